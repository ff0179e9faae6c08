/** The parts of every process of a gateway: single, primary or worker. */
import cluster from 'node:cluster'
import { dirname, join, resolve } from 'node:path'
import { equals } from '../admin/guard.ts'
import { adminToken } from '../admin/token.ts'
import { fetchFrom } from '../codecs/url.ts'
import { litellm } from '../compat/litellm/index.ts'
import { DEFAULT_LISTEN } from '../config/environment.ts'
import { ConfigManager } from '../config/manager.ts'
import type { SecretReader } from '../config/outside.ts'
import type { GatewayFile } from '../config/schemas/gateway.ts'
import type { Log, ProviderHealth, Services, Stores } from '../core/ports.ts'
import { DEMO_ORIGIN, DEMO_URL } from '../demo/address.ts'
import { DemoProvider } from '../demo/provider.ts'
import { isCallbackAllowed } from '../egress/callbacks.ts'
import { DocumentFetcher } from '../egress/documents.ts'
import { Fetcher } from '../egress/fetcher.ts'
import { nameServers } from '../egress/guard.ts'
import { ClientFetcher } from '../egress/media.ts'
import { recheck } from '../filters/auth.ts'
import { copiesOf } from '../filters/copies.ts'
import { connectionsWithin, openFiles } from '../http/connections.ts'
import { Listener } from '../http/server.ts'
import type { Jobs } from '../jobs/runner.ts'
import { MemoryBudget } from '../limits/memory.ts'
import { uploadFolder } from '../mcp/tools/upload.ts'
import { credentialRenewal } from '../references/renewal.ts'
import { providerHealth } from '../routing/provider-health.ts'
import { Keyring, keyFile } from '../stores/keyring.ts'
import { MemoryAffinity } from '../stores/memory/affinity.ts'
import { MemoryCache } from '../stores/memory/cache.ts'
import { MemoryCircuits } from '../stores/memory/circuits.ts'
import { MemoryCounters } from '../stores/memory/counters.ts'
import { MemoryMeasurements } from '../stores/memory/measurements.ts'
import { MemoryStreams } from '../stores/memory/streams.ts'
import { openRedis, openStores, type RedisStores } from '../stores/open.ts'
import { Lag, Memory } from '../telemetry/load.ts'
import { PrometheusMetrics } from '../telemetry/metrics.ts'
import { openTelemetry } from '../telemetry/open.ts'
import { FoundModels } from '../upstream/discovery.ts'
import { dispatch } from '../upstream/dispatch.ts'
import { InFlightCounts } from '../upstream/in-flight-count.ts'
import { UpstreamSockets } from '../upstream/provider-sockets.ts'
import { Transport } from '../upstream/transport.ts'
import { createAlerts } from './alerts.ts'
import type { CleanupStack } from './cleanup.ts'
import { reportHealth } from './health-metrics.ts'
import { createJobs } from './jobs.ts'
import { refuseForeignKeys, reportMissingKeys } from './missing-keys.ts'
import { outageLog } from './outage.ts'
import { OrganizationPolicies, type PolicyContext } from './policies.ts'
import { Registry } from './registry.ts'
import { Reloads } from './reloads.ts'
import { version } from './version.ts'

const DEFAULT_DRAIN_MS = 30_000
const ORPHAN_SWEEP_MS = 5_000
/** Nano-USD per USD. */
const NANO = 1e9

/** Settings that differ between the processes of a gateway. */
interface ComponentsOptions {
  /** Path of `gateway.yaml`. */
  readonly config: string
  /** Includes the address of the simulated provider. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  /** Reads references of the configuration. */
  readonly secrets?: SecretReader
  /** Reads the secrets of a provider again, where another process does that. */
  readonly renew?: (provider: string) => Promise<unknown>
  /** Names that the configuration may use; defaults to everything built in. */
  readonly registry?: Registry
  /** Identity that the stores must have. */
  readonly storesIdentity?: string | undefined
  /** Replaces ports that would count for this process alone. */
  readonly shared?: Partial<Pick<Services, 'counters' | 'circuits' | 'affinity' | 'turns'>>
  /** False for a process that leads workers: it takes no share of limits. */
  readonly serves?: boolean
}

/** The parts of every process of a gateway, whether it serves requests or leads workers. */
export interface Components {
  readonly file: GatewayFile
  readonly log: Log
  /** Path of the database. */
  readonly database: string
  readonly stores: Stores
  /** Undefined where none is configured. */
  readonly redis: RedisStores | undefined
  readonly services: Services
  readonly jobs: Jobs
  /** Address of the public listener; set once it listens. */
  readonly served: { at: string }
  readonly metrics: PrometheusMetrics
  readonly lag: Lag
  readonly policies: OrganizationPolicies
  readonly policyContext: PolicyContext
  readonly registry: Registry
  /** Models that providers have listed. */
  readonly found: FoundModels
  /** Not started. */
  readonly manager: ConfigManager
  readonly reloads: Reloads
}

/** Throws a StoreError. Registers everything that must be closed in `cleanup`. */
export async function createComponents(
  file: GatewayFile,
  options: ComponentsOptions,
  cleanup: CleanupStack,
): Promise<Components> {
  const { config, env, secrets, registry = new Registry() } = options
  let opened: Stores | undefined
  const log = outageLog(options.log, async () => opened?.ping(), cleanup)
  const database = resolve(dirname(resolve(config)), file.stores.sqlite)
  let redis: RedisStores | undefined
  const stores = await openStores(
    { sqlite: database, postgres: file.stores.postgres },
    {
      warn: err => log.warn({ err }, 'store task failed; retried'),
      changed: () => redis?.changed(),
      keyring: () => keyring,
      version,
      identity: options.storesIdentity,
    },
  )
  opened = stores
  cleanup.add(() => stores.close())
  const keyring = new Keyring({ given: env.GATEWAY_MASTER_KEY, file: keyFile(database) })
  await refuseForeignKeys(stores.policies.masterKeys, keyring, env.GATEWAY_LOST_MASTER_KEY)
  await reportMissingKeys(stores.policies.masterKeys, () => keyring.versions, log)
  const lag = new Lag()
  cleanup.add(() => lag.close())
  const heap = new Memory()
  cleanup.add(() => heap.close())
  const load = { lagMs: () => lag.lagMs(), memory: () => heap.share }
  const metrics = new PrometheusMetrics({ version, lag })
  metrics.overdraft(async () => Number(await stores.overdraft()) / NANO)
  const tracing = options.serves === false ? undefined : await openTelemetry(file.telemetry, { version, env, log })
  if (tracing) cleanup.add(() => tracing.close())
  const cache = new MemoryCache({ maxBytes: file.server.cache })
  redis = await openShared(file, options, { metrics, cache, stores })
  if (redis) {
    redis.onChanged(() => stores.refresh())
    cleanup.add(() => redis?.close())
  }
  const shared = redis ? portsOf(redis) : options.shared
  const allowPrivate = env.GATEWAY_ALLOW_PRIVATE_PROVIDERS === 'true'
  const inFlight = new InFlightCounts()
  const { wires, filters, endpoints, operations } = registry
  const inProcess = new Map([[DEMO_ORIGIN, new DemoProvider(Object.values(operations))]])
  const { gather: gatherMs, linger } = file.server
  const transport = new Transport({ allowPrivate, gatherMs, inFlight, inProcess, linger })
  cleanup.add(() => transport.close())

  const policyContext = { stores: stores.policies, keyring, log, wires, operations, allowPrivate }
  const policies = new OrganizationPolicies(policyContext)
  const memory = new MemoryBudget(file.server.buffer, load)
  const allowed = file.server.fetch_from ?? []
  fetchFrom(allowed)
  const egress = () => manager.current.catalog.egress
  const fetcher = new Fetcher(allowed, nameServers(), egress)
  const served = { at: file.server.listen ?? DEFAULT_LISTEN }
  const circuits = shared?.circuits ?? new MemoryCircuits()
  const renewed = credentialRenewal({
    manager: () => manager,
    renew: options.renew ?? (provider => manager.renew(provider)),
    log,
  })
  const alerts = createAlerts({ stores, metrics, log, manager: () => manager, wake: () => jobs.wake() })
  const jobs: Jobs = createJobs({
    ...{ file, config, stores, policies, transport, fetcher, circuits, registry, metrics, log, alerts },
    served,
    keyring: () => keyring,
    manager: () => manager,
    ...{ egress, renewed },
  })
  const services: Services = {
    version,
    database: stores,
    keys: stores.keys,
    sessions: stores.sessions,
    oauth: stores.oauth,
    policies,
    ledger: stores.ledger,
    jobs: stores.jobs,
    jobRunner: jobs,
    responses: stores.responses,
    issuerKeys: stores.issuerKeys,
    contents: stores.contents,
    realtimeSecrets: stores.realtimeSecrets,
    reports: stores.reports,
    counters: new MemoryCounters(),
    cache,
    // Kept turns use the memory of the response cache.
    turns: cache,
    circuits,
    measurements: new MemoryMeasurements(),
    affinity: new MemoryAffinity(),
    streams: cluster.isWorker ? undefined : new MemoryStreams(memory),
    alerts: alerts.watch,
    providerSockets: new UpstreamSockets({ allowPrivate, inFlight, inProcess, renewed }),
    media: new ClientFetcher(fetcher, file.server.fetch),
    uploads: await uploadFolder(env.UPLOAD_DIR),
    documents: new DocumentFetcher(fetcher),
    signingKeys: purpose => keyring.derived(purpose),
    memory,
    load,
    metrics,
    tracing,
    log,
    random: Math.random,
    now: Date.now,
    ...shared,
  }
  const reloads = new Reloads(metrics, log)
  const found = new FoundModels()
  const manager: ConfigManager = new ConfigManager({
    path: config,
    env,
    own: new Set([DEMO_URL]),
    secrets,
    registries: {
      ...{ wires, filters, endpoints, operations, services },
      compat: { litellm: litellm({ isAdmin: adminOf(database) }) },
      terminal: dispatch(transport, memory, fetcher, renewed),
      found: url => found.of(url),
      simulated: new Set([DEMO_ORIGIN]),
      isCallbackAllowed,
    },
    loadPlugins: folder => registry.load(folder),
    onResult: result => reloads.note(result),
  })
  reportHealth({
    ...{ database, metrics },
    memory: () => heap.share,
    ping: () => stores.ping(),
    redis,
    providers: () => providerHealth(manager.current.catalog, circuits),
  })
  const own = { file, log, database, stores, redis, services, jobs, served, metrics, lag, found }
  return { ...own, policies, policyContext, registry, manager, reloads }
}

/** Compares with the admin token that the primary process has written, which is read when a client first asks as an admin. */
function adminOf(database: string): (secret: string) => boolean {
  let isToken: ((given: string) => boolean) | undefined
  return secret => {
    isToken ??= equals(adminToken(join(dirname(database), 'admin.token')))
    return isToken(secret)
  }
}

/** Opens Redis, where it is configured: nodes and workers share it. */
async function openShared(
  { stores: { redis }, server }: GatewayFile,
  { log, serves = true }: ComponentsOptions,
  {
    metrics,
    cache,
    stores,
  }: { readonly metrics: PrometheusMetrics; readonly cache: MemoryCache; readonly stores: Stores },
): Promise<RedisStores | undefined> {
  if (redis === undefined) return undefined
  return openRedis(redis, {
    ...{ log, serves, replies: cache, repliesPerOrganization: server.cache / 2 },
    living: () => stores.living(),
    observe: (outcome, seconds) => metrics.redis(outcome, seconds),
  })
}

const portsOf = (redis: RedisStores) => {
  const { counters, cache, turns, circuits, affinity, measurements } = redis
  return { ...{ counters, cache, turns, circuits, affinity, measurements }, redis }
}

/** The public listener of `server`, not yet listening. */
export function listenerOf(components: Components): Listener {
  const { services, manager } = components
  const { server } = components.file
  const { memory, load, metrics, log } = services
  const listener = new Listener({
    listen: server.listen ?? DEFAULT_LISTEN,
    limits: {
      heartbeat: server.heartbeat,
      hold: server.hold,
      request: server.request_timeout,
      minRate: server.min_rate,
    },
    headerTimeout: server.header_timeout,
    writeStall: server.write_stall,
    origins: server.cors.origins,
    maxConnections: Math.min(server.max_connections, connectionsWithin(openFiles())),
    current: () => manager.current,
    recheck: ex => void recheck(ex, services),
    ...{ memory, load, metrics, log },
  })
  components.metrics.connections(() => listener.connections)
  return listener
}

/** Ends a listener in its time, and with it the copies of requests. */
export async function drainListener(listener: Listener, components: Components): Promise<void> {
  await listener.drain(drainTimes(components))
  await copiesOf(components.services).end()
}

/** Health of the providers as this process has seen it. */
export const healthIn = ({ manager, services }: Components): ProviderHealth[] =>
  providerHealth(manager.current.catalog, services.circuits)

/** Warms up lazily built parts, then resets the lag measurement, which included the start. */
export function warmUp({ registry, lag }: Components): void {
  for (const { codec } of registry.endpoints) codec.prepare?.()
  lag.forget()
}

/** Milliseconds, as `Listener.drain` takes them. */
export const drainTimes = ({ file: { server } }: Components) => ({
  delay: server.drain_delay,
  drain: server.drain ?? DEFAULT_DRAIN_MS,
})

/** Lists requests of ended processes as orphaned, at intervals, until `cleanup` closes. */
export function sweepRegularly({ stores: { ledger }, log }: Components, cleanup: CleanupStack): void {
  let isSweeping = false
  const sweep = async () => {
    // While the disk is full, a sweep may take longer than the interval.
    if (isSweeping) return
    isSweeping = true
    try {
      const orphans = await ledger.recover()
      if (orphans > 0) log.warn({ orphans }, 'orphaned requests found')
    } catch (err) {
      log.warn({ err }, 'orphan sweep failed')
    } finally {
      isSweeping = false
    }
  }
  const timer = setInterval(() => void sweep(), ORPHAN_SWEEP_MS)
  timer.unref()
  cleanup.add(() => clearInterval(timer))
}
