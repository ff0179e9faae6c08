/** What a policy leaves of a plan: offers, refusals, and whose credentials are tried in which order. */
import fc from 'fast-check'
import t from 'tap'
import type { Catalog } from '../../src/core/catalog.ts'
import type { Compliance, Policy, Rule } from '../../src/core/policy.ts'
import type { Principal } from '../../src/core/ports.ts'
import type { Credential } from '../../src/core/provider-settings.ts'
import type { Mapping, Model, Provider } from '../../src/core/translator.ts'
import { models } from '../../src/endpoints/models.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { noDemands } from '../../src/policy/compliance.ts'
import { plan } from '../../src/routing/plan.ts'
import { ownFirst } from '../../src/routing/policy.ts'
import { groupsOf } from '../../src/routing/ranking.ts'
import { TargetQueue } from '../../src/routing/target-queue.ts'
import { MemoryCircuits } from '../../src/stores/memory/circuits.ts'
import { exchange, listingOf, principal } from '../core/kit.ts'
import { runs } from '../helpers/runs.ts'
import { silent, target } from '../plugins/wire-kit.ts'
import { queryOf } from '../routing/kit.ts'
import { policyOf, priced, type Restrictions, rule } from './kit.ts'

fc.configureGlobal({ seed: 20261121 })

const { translator } = target()
const platform = (id: string): Credential => ({ id: `${id}#1`, source: 'platform', secret: 'sk-p', fingerprint: 'p' })
const own = (id: string): Credential => ({
  id,
  source: 'byok',
  secret: `sk-${id}`,
  fingerprint: id,
  label: `label ${id}`,
})
const provider = (id: string, more: Partial<Provider> = {}): Provider =>
  target({
    provider: { id, wires: new Map([['chat', translator]]), credentials: [platform(id)], priority: 1, ...more },
  }).provider

/** Without a credential, for want of these variables. */
const awaiting = (id: string, ...secret: string[]) =>
  provider(id, { credentials: [], variables: { secret, address: ['NOT_TOLD'] } })

type Offer = readonly [by: Provider, more?: Partial<Mapping>]
function catalogOf(rows: Readonly<Record<string, readonly Offer[]>>): Catalog {
  const catalog = { models: new Map<string, Model>(), aliases: new Map<string, Model>(), providers: new Map() }
  for (const [id, offers] of Object.entries(rows)) {
    const mappings: Mapping[] = []
    const model: Model = { ...target().mapping.model, id, mappings }
    catalog.models.set(id, model)
    for (const [by, more] of offers) {
      catalog.providers.set(by.id, by)
      mappings.push({ ...target().mapping, model, provider: by, wires: by.wires, ...priced('1', '1'), ...more })
    }
  }
  return catalog
}

interface Caller extends Restrictions {
  readonly mode?: Principal['mode']
  /** Provider keys of the organization, by provider. */
  readonly keys?: Readonly<Record<string, readonly Credential[]>>
}
function ask(catalog: Catalog, request: object, { mode = 'credits', keys = {}, ...restrictions }: Caller) {
  const lists = new Map(Object.entries(keys))
  const none: readonly Credential[] = []
  const more: Partial<Policy> = { credentials: id => lists.get(id) ?? none }
  const policy = policyOf(restrictions, more)
  const caller = { principal: { ...principal, mode }, policy, access: policy.access(principal) }
  return { ...caller, query: queryOf(policy.catalog(catalog), request, caller) }
}
/** Credential ids in the order of the plan, or the refusal. */
function planned(catalog: Catalog, request: object, caller: Caller, auto: string[] = []): string[] | GatewayError {
  try {
    return plan(ask(catalog, request, caller).query, { auto }).targets.map(
      ({ provider: by, credential }) => credential?.id || `${by.id} without`,
    )
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

t.test(
  'a limit on prices excludes offers that cost more for this request, and refuses it when none costs less',
  async t => {
    const { price } = priced('1', '1')
    const dearer = priced('5', '5').price
    const acme: Partial<Mapping> = {
      price: { ...price, tiers: [{ above: 100, rates: dearer.rates }], tierFactors: { priority: 3_000_000n } },
      serviceTiers: ['priority'],
    }
    const catalog = catalogOf({
      m: [
        [provider('acme', { priority: 2 }), acme],
        [provider('best'), { ...priced('2', '2'), serviceTiers: ['priority'] }],
      ],
      alone: [[provider('acme'), acme]],
    })
    const caller = { rules: [rule('allow_pricing', { maxInputPrice: '2' })] }
    const long = { messages: [{ role: 'user', content: 'x'.repeat(4000) }] }
    const priority = { service_tier: 'priority' }
    t.strictSame(planned(catalog, {}, caller), ['acme#1', 'best#1'])
    t.strictSame(planned(catalog, long, caller), ['best#1'])
    t.strictSame(planned(catalog, priority, caller), ['best#1'])
    t.strictSame(planned(catalog, { model: 'alone' }, caller), ['acme#1'])
    const refused =
      /^Access denied: Model input price exceeds maximum allowed \((?:5|3) > 2 USD per million tokens, .*\)/
    for (const request of [long, priority]) {
      t.match(planned(catalog, { ...request, model: 'alone' }, caller), { status: 403, message: refused })
    }
  },
)

/** What a key is shown. */
async function listedFor(catalog: Catalog, caller: Caller, query = ''): Promise<string[]> {
  const { principal, policy, access } = ask(catalog, {}, caller)
  const listing = exchange({ endpoint: models, query, snapshot: { catalog }, principal })
  listing.caller.policy = policy
  listing.caller.access = access
  return (await listingOf<{ id: string }>(listing)).map(({ id }) => id)
}

t.test('a key lists what it could call now, by the mode of its project and its own keys', async t => {
  const acme = provider('acme')
  const catalog = catalogOf({
    m: [[acme], [provider('best', { credentials: [] })]],
    poor: [[provider('poor', { credentials: [] })]],
    dear: [[acme, { price: undefined, unpriced: 'refuse' }]],
    local: [[provider('local', { auth: { scheme: 'none' }, credentials: [] })]],
    off: [[provider('off', { priority: 0 })]],
    mute: [[provider('mute', { wires: new Map() })]],
    mine: [[provider('mine', { owner: 'org-1', credentials: [] })]],
  })
  const only = { ...own('k3'), models: ['other'] }
  const rows: [Caller, ids: string][] = [
    [{ mode: 'credits' }, 'm local'],
    [{ mode: 'credits', keys: { poor: [own('k1')] } }, 'm local'],
    [{ mode: 'api-keys' }, ''],
    [{ mode: 'api-keys', keys: { best: [own('k1')] } }, 'm'],
    [{ mode: 'api-keys', keys: { acme: [own('k1')] } }, 'm dear'],
    [{ mode: 'hybrid' }, 'm local'],
    [{ mode: 'hybrid', keys: { poor: [own('k1')], acme: [own('k2')], mine: [own('k3')] } }, 'm poor dear local mine'],
    [{ mode: 'api-keys', keys: { poor: [only] } }, ''],
    [{ mode: 'api-keys', keys: { poor: [only, { ...only, models: ['poor/poor'] }] } }, 'poor'],
  ]
  for (const [caller, ids] of rows) {
    const shown = await listedFor(catalog, caller)
    t.equal(shown.join(' '), ids, JSON.stringify(caller))
    for (const id of catalog.models.keys()) {
      const isCalled = Array.isArray(planned(catalog, { model: id }, caller))
      t.equal(shown.includes(id), isCalled, `${id} as it is planned`)
    }
    t.equal((await listedFor(catalog, caller, 'include_restricted=1')).length, 7, 'all is public')
  }
  t.strictSame(await listedFor(catalog, { mode: 'hybrid', keys: { best: [own('k')] } }, 'mapped=1'), [
    'acme/m',
    'best/m',
    'local/local',
  ])
  const { access, policy, ...caller } = ask(catalog, {}, { mode: 'hybrid' })
  const unreadable = new GatewayError({ status: 503, type: 'api_error', code: 'credential_unavailable', message: '' })
  const listing = exchange({ endpoint: models, snapshot: { catalog }, principal: caller.principal })
  Object.assign(listing.caller, { access, policy: { ...policy, catalog: () => catalog } })
  Object.assign(listing.caller.policy!, {
    credentials() {
      throw unreadable
    },
  })
  t.strictSame(
    (await listingOf<{ id: string }>(listing)).map(({ id }) => id),
    ['local'],
    'with keys that cannot be opened nothing is called',
  )
})

t.test('the mode of a project decides whose credentials are tried, own ones before those of the gateway', async t => {
  const acme = provider('acme', { priority: 3 })
  const catalog = catalogOf({
    m: [
      [acme],
      [provider('best', { priority: 2, credentials: [] })],
      [provider('local', { auth: { scheme: 'none' }, credentials: [] })],
    ],
    poor: [[provider('poor', { credentials: [] })]],
    dear: [[acme, { price: undefined, unpriced: 'refuse' }]],
    waiting: [[awaiting('a', 'A_KEY')], [awaiting('b', 'B_ID', 'B_KEY')], [awaiting('c')], [awaiting('d', 'A_KEY')]],
    many: Array.from({ length: 6 }, (_, at) => [awaiting(`p${at}`, `K${at}`)] as const),
  })
  const keys = { acme: [own('k1'), own('k2')], best: [own('k3')] }
  const rows: [
    Caller,
    model: string,
    got: string[] | { status: number; code: string; message: RegExp; remedy?: RegExp },
  ][] = [
    [{ mode: 'credits', keys }, 'm', ['acme#1', 'local without']],
    [{ mode: 'api-keys', keys }, 'm', ['k1', 'k2', 'k3']],
    [{ mode: 'hybrid', keys }, 'm', ['k1', 'k2', 'acme#1', 'k3', 'local without']],
    [{ mode: 'hybrid' }, 'm', ['acme#1', 'local without']],
    [{ mode: 'hybrid', keys }, 'best/m', ['k3']],
    [
      { mode: 'api-keys', keys: { best: [own('k3')] } },
      'acme/m',
      { status: 400, code: 'no_provider_key', message: /add one for acme,/ },
    ],
    [
      { mode: 'api-keys' },
      'm',
      { status: 400, code: 'no_provider_key', message: /"api-keys".*"m": add one for acme or best or local/ },
    ],
    [{ mode: 'credits' }, 'poor', { status: 404, code: 'model_not_available', message: /credential/ }],
    [{ mode: 'hybrid' }, 'poor', { status: 404, code: 'model_not_available', message: /credential/ }],
    [
      { mode: 'credits' },
      'waiting',
      {
        status: 404,
        code: 'model_not_available',
        message: /^[^_]*no provider of it has a credential\. GET [^_]*$/,
        remedy: /^Set A_KEY or B_ID and B_KEY and restart the gateway\.$/,
      },
    ],
    [
      { mode: 'credits' },
      'many',
      {
        status: 404,
        code: 'model_not_available',
        message: /^[^_]*$/,
        remedy: /^Set K0, K1, K2, K3 or another one of its providers and restart the gateway\.$/,
      },
    ],
    [{ mode: 'credits' }, 'dear', { status: 402, code: 'billing_error', message: /unknown/ }],
    [{ mode: 'hybrid', keys }, 'dear', ['k1', 'k2']],
    [{ mode: 'api-keys', keys }, 'dear', ['k1', 'k2']],
  ]
  for (const [caller, model, got] of rows) {
    const answer = planned(catalog, { model }, caller)
    if (Array.isArray(got)) t.strictSame(answer, got, `${caller.mode} ${model}`)
    else t.match(answer, got, `${caller.mode} ${model}`)
  }
})

t.test(
  "an organization's own provider is called with its key in every mode, and without one where its scheme is none",
  async t => {
    const mine = provider('mine', { owner: 'org-1', credentials: [] })
    const open = provider('open', { owner: 'org-1', credentials: [], auth: { scheme: 'none' } })
    const catalog = catalogOf({ m: [[mine, { price: undefined, unpriced: 'refuse' }]], n: [[open]] })
    for (const mode of ['credits', 'api-keys', 'hybrid'] as const) {
      t.strictSame(planned(catalog, {}, { mode, keys: { mine: [own('k')] } }), ['k'], mode)
      const [only] = plan(ask(catalog, { model: 'n' }, { mode }).query, { auto: [] }).targets
      t.match(only?.credential, { source: 'byok', secret: '' }, mode)
    }
    t.match(planned(catalog, {}, { mode: 'credits' }), { code: 'model_not_available' })
  },
)

t.test('candidates with a key of the organization are tried before all others', async t => {
  const catalog = catalogOf({
    m: [[provider('cheap', { priority: 9 })], [provider('ours')], [provider('last', { priority: 0.5 })]],
  })
  const { query } = ask(catalog, {}, { mode: 'hybrid', keys: { ours: [own('k1')] } })
  const { targets } = plan(query, { auto: [] })
  const course = new TargetQueue({ ranked: ownFirst(groupsOf(targets)), failover: true }, new MemoryCircuits(), null)
  const order: (string | undefined)[] = []
  for (let step = course.next(); step; step = course.next()) order.push(step.target.credential?.id)
  t.strictSame(order, ['k1', 'ours#1', 'cheap#1', 'last#1'])
})

t.test('offers that are denied are left out, and the refusal says why', async t => {
  const data = { ...silent, trainsOnData: false }
  const training = provider('acme', { priority: 2 })
  const catalog = catalogOf({
    m: [[training], [provider('best', { dataPolicy: data })]],
    free: [[training, priced('0', '0')]],
  })
  const deny = (...names: string[]): Rule => rule('deny_providers', { providers: names })
  const compliance: Compliance = { ...noDemands, noTraining: true }
  const [acme, both] = [deny('acme'), deny('acme', 'best')]
  const small = rule('allow_models', { models: ['free'] })
  const blocked =
    "This request was blocked by your organization's provider compliance policy. No available provider for"
  const rows: [Caller, model: string, got: string[] | string][] = [
    [{ rules: [acme] }, 'm', ['best#1']],
    [{ keyRules: [acme] }, 'm', ['best#1']],
    [
      { rules: [acme] },
      'acme/m',
      `Access denied: Provider acme is in the denied providers list (rule ${acme.id} of the organization).`,
    ],
    [
      { rules: [both] },
      'm',
      `Access denied: Provider acme is in the denied providers list (rule ${both.id} of the organization); ` +
        `Provider best is in the denied providers list (rule ${both.id} of the organization).`,
    ],
    [
      { rules: [small] },
      'm',
      `Access denied: Model m is not in the allowed models list (rule ${small.id} of the organization).`,
    ],
    [{ compliance }, 'm', ['best#1']],
    [{ compliance }, 'acme/m', `${blocked} acme/m meets it: acme may train on API data.`],
    [{ compliance, rules: [deny('best')] }, 'm', `${blocked} m meets it: acme may train on API data.`],
    [{ compliance, rules: [acme] }, 'm', ['best#1']],
  ]
  for (const [caller, model, got] of rows) {
    const answer = planned(catalog, { model }, caller)
    if (typeof got === 'string') t.match(answer, { status: 403, code: 'permission_denied', message: got }, model)
    else t.strictSame(answer, got, model)
  }
  t.match(
    planned(catalog, { model: 'unknown' }, { rules: [small] }),
    { status: 404 },
    'what is not there is not denied',
  )
  t.strictSame(planned(catalog, { model: 'auto' }, { rules: [small] }, ['m', 'free']), ['acme#1'])
  t.match(planned(catalog, { model: 'auto' }, { rules: [small] }, ['m']), { status: 403 })
  t.strictSame(planned(catalog, { model: 'auto', free_models_only: true }, {}, ['m', 'free']), ['acme#1'])
  t.match(planned(catalog, { model: 'auto', free_models_only: true }, {}, ['m']), {
    status: 404,
    code: 'model_not_available',
  })
})

t.test('the listing holds what can be called, and nothing else', async t => {
  const names = ['acme', 'best', 'cheap'] as const
  const facts = { acme: { gdpr: true }, best: { gdpr: true, soc2: '2' }, cheap: {} } as const
  const by = Object.fromEntries(
    names.map(id => [id, provider(id, { dataPolicy: { ...silent, ...facts[id] } })]),
  ) as Record<(typeof names)[number], Provider>
  const ids = ['a', 'b', 'c'] as const
  const catalog = catalogOf({
    a: [[by.acme], [by.best, priced('5', '9')]],
    b: [[by.best], [by.cheap, priced('0', '0')]],
    c: [
      [by.acme, { price: undefined }],
      [by.cheap, priced('0', '0')],
    ],
  })
  const some = <T>(...values: T[]) => fc.uniqueArray(fc.constantFrom(...values), { minLength: 1 })
  const refs = some<string>(...ids, 'acme/a', 'best/b', 'cheap/c')
  const anyRule = fc.oneof(
    refs.map(list => rule('allow_models', { models: list })),
    refs.map(list => rule('deny_models', { models: list })),
    some<string>(...names).map(list => rule('allow_providers', { providers: list })),
    some<string>(...names).map(list => rule('deny_providers', { providers: list })),
    fc.constantFrom<'free' | 'paid'>('free', 'paid').map(pricing => rule('allow_pricing', { pricing })),
    fc.constantFrom<'free' | 'paid'>('free', 'paid').map(pricing => rule('deny_pricing', { pricing })),
    fc.constantFrom('0', '1', '5').map(maxInputPrice => rule('allow_pricing', { maxInputPrice })),
    fc.constantFrom('0', '1', '5').map(maxInputPrice => rule('deny_pricing', { maxInputPrice })),
  )
  const demands = fc.record({
    gdpr: fc.boolean(),
    soc2: fc.constantFrom(undefined, '2' as const),
    blockedModels: fc.subarray<string>(['a', 'best/b']),
  })
  const levels = fc.array(anyRule, { maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(levels, levels, fc.option(demands, { nil: undefined }), async (rules, keyRules, asked) => {
      const restrictions = { rules, keyRules, ...(asked && { compliance: { ...noDemands, ...asked } }) }
      const listed = (query: string) => listedFor(catalog, restrictions, query)
      const callable = (all: readonly string[]) =>
        all.filter(model => Array.isArray(planned(catalog, { model }, restrictions)))
      const mapped = [...catalog.models.values()].flatMap(model =>
        model.mappings.map(mapping => `${mapping.provider.id}/${model.id}`),
      )
      t.strictSame(await listed(''), callable(ids))
      t.strictSame(await listed('mapped=true'), callable(mapped))
      t.strictSame(await listed('include_restricted=true'), ids)
      t.strictSame(await listed('include_restricted=true&mapped=true'), mapped)
    }),
    { numRuns: runs(150) },
  )
})
