/** A gateway that exists only as an admin context: two providers, one model, a key or two. */
import type { AdminContext } from '../../src/admin/context.ts'
import { compile, type Link } from '../../src/core/chain.ts'
import type { Codec } from '../../src/core/codec.ts'
import type { FilterFactory } from '../../src/core/filter.ts'
import type {
  AuditStore,
  CreditStore,
  ExplainedCandidate,
  ExplainedRoute,
  JobRunner,
  JobStore,
  KeyRecord,
  MemberStore,
  OAuthStores,
  OrganizationStore,
  PlanStore,
  PolicyAdmin,
  ProjectStore,
  UsageQuery,
  UsageTotals,
} from '../../src/core/ports.ts'
import { s } from '../../src/core/schema.ts'
import type { Route, Snapshot } from '../../src/core/snapshot.ts'
import type { Mapping, Model, Provider, Translator } from '../../src/core/translator.ts'
import { errors } from '../../src/lib/error.ts'
import { providerHealth } from '../../src/routing/provider-health.ts'
import { MemoryCircuits } from '../../src/stores/memory/circuits.ts'
import { silent } from '../plugins/wire-kit.ts'

/** Planted wherever the gateway holds a secret; no answer may show it. */
export const CANARY = 'sk-canary-0123456789abcdef'
export const TOKEN = 'token-of-the-admin-listener'

const provider = (id: string, rest: Partial<Provider>): Provider => ({
  id,
  name: `${id} inc.`,
  baseUrl: 'http://127.0.0.1:1/v1',
  auth: { scheme: 'bearer' },
  headers: { 'x-secret': CANARY },
  passHeaders: {},
  credentials: [],
  wires: new Map([['chat', { wire: 'openai.chat' } as Translator]]),
  quirks: { drop: new Set(), rename: {}, default: {}, clamp: {} },
  timeouts: { connect: 1, firstEvent: 1, idle: 1, total: 1 },
  concurrency: 256,
  priority: 1,
  dataPolicy: silent,
  reasoningReplay: undefined,
  ...rest,
})

const live = provider('live-one', {
  credentials: [{ id: 'c1', source: 'platform', secret: CANARY, fingerprint: 'f1e2d3' }],
})
const keyless = provider('keyless', { variables: { secret: ['KEYLESS_API_KEY'], address: [] } })
const local = provider('local', { auth: { scheme: 'none' } })

/** One model with three offers: priced, unpriced without a credential, and over since long. */
function catalogue(): Snapshot['catalog'] {
  const mappings: Mapping[] = []
  const model = {
    id: 'acme-large',
    name: 'Acme Large',
    family: 'acme',
    aliases: ['acme-l'],
    contextLength: 200_000,
    maxOutput: 8192,
    output: ['text'],
    mappings,
  } as unknown as Model
  const offer = (of: Provider, rest: Partial<Mapping>) =>
    mappings.push({
      model,
      provider: of,
      externalId: `${of.id}-large`,
      pricing: {},
      supports: new Set(),
      ...rest,
    } as Mapping)
  offer(live, {
    price: { rates: { prompt: 2_500_000n, completion: 10_000_000n }, tiers: [] },
    pricing: { prompt: '0.0000025', completion: '0.00001' },
  })
  offer(keyless, {})
  offer(local, { deactivatedAt: '2020-01-01' })
  const providers = new Map([live, keyless, local].map(each => [each.id, each]))
  return { models: new Map([[model.id, model]]), aliases: new Map([['acme-l', model]]), providers }
}

const factory = (name: string, rest: Partial<FilterFactory> = {}): FilterFactory => ({
  name,
  options: s.unknown(),
  create: () => ({}),
  ...rest,
})

function route(name: string, path: string, factories: FilterFactory[], serve: Route['endpoint']['serve']): Route {
  const links: Link[] = factories.map(each => ({
    factory: each,
    filter: {},
    options: each.repeats ? { attempts: 3 } : undefined,
  }))
  const chain = compile(links, () => Promise.reject(new Error('not served here')))
  return {
    endpoint: { name, method: 'POST', path, chain: 'inference', codec: {} as Codec, serve, bodyLimit: 1 },
    chain,
  }
}

const routes: Route[] = [
  {
    ...route(
      'chat',
      '/v1/chat/completions',
      [
        factory('auth', { gives: ['principal'] }),
        factory('route', { needs: ['principal'], gives: ['target'], repeats: true }),
        factory('translate', { needs: ['target'], gives: ['outbound'] }),
      ],
      'upstream',
    ),
    compat: { reasoning_content: true },
  },
  route('models', '/v1/models', [factory('auth')], () => Promise.reject(new Error('not served here'))),
]

const totals: UsageTotals = {
  requests: 12,
  errors: 1,
  cached: 2,
  inputTokens: 3400,
  outputTokens: 560,
  cachedTokens: 100,
  reasoningTokens: 7,
  cost: 1_234_500_000n,
  creditsCost: 1_234_500_000n,
  byokCost: 0n,
  storageCost: 0n,
}

const candidate: ExplainedCandidate = {
  offer: 'live-one/acme-large',
  place: 1,
  price: 6.25,
  priority: 1,
  requests: 1200,
  uptime: 99.5,
  throughput: 61.25,
  latency: 412.3,
  circuit: 'closed',
  openMs: 0,
  polls: null,
  terms: { price: 0, uptime: 0, throughput: 0.2, latency: 0, cache: 1 },
  base: 0.0429,
  priorityPenalty: 0,
  uptimePenalty: 0,
  score: 0.0429,
}
const explained: ExplainedRoute = {
  model: 'acme-large',
  reason: 'weighted-score',
  choice: 'live-one/acme-large',
  candidates: [
    candidate,
    {
      ...candidate,
      offer: 'local/acme-large',
      place: 2,
      latency: null,
      circuit: 'open',
      openMs: 12_345,
      polls: { circuit: 'open', openMs: 500 },
      score: 1.5,
    },
  ],
  excluded: [{ offer: 'keyless/acme-large', reason: 'its provider has no credential' }],
}

export interface Fake extends AdminContext {
  /** Queries that the usage store received. */
  readonly queries: UsageQuery[]
  /** Arguments that `sessions.begin` and `sessions.end` received. */
  readonly lent: string[]
  readonly circuits: MemoryCircuits
  readonly created: { project: string; name: string; expiresAt?: number | undefined }[]
  ready: boolean
  listen: string
  databaseFault: string | undefined
  reloadFault: Error | undefined
  storeFault: Error | undefined
  differences: string[]
  drained: number
}

const oauthOptions = {
  readsDocuments: false,
  redirectSchemes: new Set<string>(),
  codeMs: 60_000,
  accessTokenMs: 3_600_000,
  refreshTokenMs: 2_592_000_000,
  loginCodeMs: 600_000,
  limits: { register: 10, consent: 10, clientAuth: 20 },
}

export function fakeContext(): Fake {
  const record = (id: string, name: string): KeyRecord => ({
    id,
    name,
    kind: 'key',
    project: 'default',
    organization: 'default',
    preview: 'mgw_ab…yz',
    status: 'active',
    createdBy: null,
    createdAt: '2026-01-31T10:00:00.000Z',
    expiresAt: null,
    limits: [],
    spent: id === 'k1' ? 250_000_000n : 0n,
  })
  const limited: KeyRecord = { ...record('k2', 'a longer name'), rateLimits: { rpm: 30, concurrency: 4 } }
  const find = (id: string) => {
    if (fake.storeFault) throw fake.storeFault
    if (id !== 'k1') throw errors.notFound(`There is no key "${id}".`)
    return record('k1', 'first')
  }
  const named = (what: string, wanted: string) => {
    if (wanted === 'nope') throw errors.notFound(`There is no ${what} "nope".`)
    return wanted
  }
  const fake: Fake = {
    queries: [],
    lent: [],
    circuits: new MemoryCircuits(),
    created: [],
    ready: true,
    listen: '127.0.0.1:8080',
    contents: { add: async () => {}, find: async () => undefined, prune: async () => 0 },
    databaseFault: undefined,
    reloadFault: undefined,
    storeFault: undefined,
    differences: [],
    drained: 0,
    snapshot: () => ({
      version: 'abc123',
      catalog: catalogue(),
      plans: new Map(),
      mcp: {
        site: { publicUrl: undefined, hosts: new Set(), origins: new Set() },
        nanoBanana: '',
        maxSaved: 1,
        streams: { perKey: 1, perOrganization: 1, perProcess: 1 },
        oauth: oauthOptions,
      },
      endUsers: undefined,
      realtime: {
        ...{
          enabled: true,
          session: 1,
          idle: 1,
          spend: 0n,
          perOrganization: 1,
          perKey: 1,
          perProcess: 1,
          message: 1,
          rate: 1,
        },
      },
      match: () => undefined,
      routes: () => routes,
      retain() {},
      release() {},
    }),
    async reload() {
      if (fake.reloadFault) throw fake.reloadFault
      return { changed: true, version: 'def456', restartNeeded: [], warnings: [] }
    },
    references: () => ['$' + '{vault:secret/acme#key}'],
    config: () => ({ stores: { sqlite: '../data/gateway.db' }, providers: [{ auth: { secret: '***' } }] }),
    accounts: {
      bootstrap: async () => undefined,
      async createKey(input) {
        fake.created.push(input)
        return { ...record('k2', input.name), project: input.project, key: 'mgw_new' }
      },
      listKeys: async project => (project === 'empty' ? [] : [record('k1', 'first'), limited]),
      showKey: async id => find(id),
      updateKey: async id => find(id),
      revokeKey: async id => ({ ...find(id), status: 'revoked' }),
      rollKey: async id => ({ ...find(id), id: 'k3', key: 'mgw_rolled' }),
    },
    operatorSessions: {
      async begin(project) {
        fake.lent.push(`begin ${named('project', project)}`)
        return { id: 's1', key: 'mgw_es_lent', expiresAt: '2026-01-31T10:01:00.000Z' }
      },
      async end(id) {
        if (fake.storeFault) throw fake.storeFault
        fake.lent.push(`end ${id}`)
      },
    },
    organizations: {} as OrganizationStore,
    projects: {} as ProjectStore,
    members: {} as MemberStore,
    credits: {} as CreditStore,
    plans: {} as PlanStore,
    audit: {} as AuditStore,
    names: {
      organization: async wanted => named('organization', wanted),
      project: async wanted => named('project', wanted),
      key: async wanted => named('key', wanted),
    },
    policies: {} as PolicyAdmin,
    oauth: {} as OAuthStores,
    jobs: {} as JobStore,
    jobRunner: {} as JobRunner,
    requests: { page: async () => ({ rows: [], next: undefined }), get: async () => undefined },
    usage: {
      async totals(query) {
        fake.queries.push(query)
        return totals
      },
      breakdown: async () => [
        { id: 'acme-large', ...totals },
        { id: 'demo', ...totals, requests: 1, cost: 0n },
      ],
      check: async () => fake.differences,
      sumDay: async () => undefined,
    },
    metrics: {
      text: async () => '# HELP up Up.\n# TYPE up gauge\nup{a="b\\"c"} 1\nwarm +Inf\n',
      contentType: 'text/plain; version=0.0.4; charset=utf-8',
    },
    state: () => ({
      version: '0.1.0',
      uptimeMs: 93_784_000,
      pid: 4242,
      listen: fake.listen,
      publicUrl: 'https://gateway.example.com',
      ready: fake.ready,
      inFlight: 3,
      lastReload: { ok: true, at: Date.UTC(2026, 0, 31) },
    }),
    explainRoute: ({ model }) => {
      if (model !== 'acme-large') throw errors.modelNotFound(model)
      return explained
    },
    providerHealth: () => providerHealth(catalogue(), fake.circuits),
    drain() {
      fake.drained++
      fake.ready = false
    },
    async ping() {
      if (fake.databaseFault) throw new Error(fake.databaseFault)
    },
  }
  return fake
}
