/** Puts a gateway together: stores, configuration, listeners; and takes it apart again. */
import { dirname, join, resolve } from 'node:path'
import type { AdminContext } from './admin/context.ts'
import { adminListener } from './admin/server.ts'
import { adminToken } from './admin/token.ts'
import { effectiveConfig } from './config/effective.ts'
import { loadGateway } from './config/load.ts'
import { ConfigManager, type ReloadResult } from './config/manager.ts'
import { watchConfig } from './config/watch.ts'
import type { Policies } from './core/policy.ts'
import type { Log, Services } from './core/ports.ts'
import { ByteRoom } from './core/room.ts'
import { startDemo } from './demo/server.ts'
import { Listener } from './http/server.ts'
import { OrganizationPolicies, policyAdmin } from './policies.ts'
import { Registry } from './registry.ts'
import { explainRoute } from './routing/explain.ts'
import { Keyring } from './stores/keyring.ts'
import { MemoryCache } from './stores/memory/cache.ts'
import { MemoryCircuits } from './stores/memory/circuits.ts'
import { MemoryCounters } from './stores/memory/counters.ts'
import { MemoryMeasurements } from './stores/memory/measurements.ts'
import { MemoryPins } from './stores/memory/pins.ts'
import { keyFile, openStores, type Stores } from './stores/sqlite/index.ts'
import { Lag } from './telemetry/lag.ts'
import { Memory } from './telemetry/memory.ts'
import { PrometheusMetrics } from './telemetry/metrics.ts'
import { ImageFetcher } from './upstream/image.ts'
import { terminal } from './upstream/terminal.ts'
import { Transport } from './upstream/transport.ts'
import { version } from './version.ts'

const DEFAULT_LISTEN = '127.0.0.1:8080'
const DEFAULT_ADMIN = '127.0.0.1:9901'
const DEFAULT_DRAIN_MS = 30_000
const ORPHAN_SWEEP_MS = 5_000
const PRUNE_MS = 600_000

export interface Gateway {
  /** `host:port`, as they came to be. */
  readonly listen: string
  readonly admin: string
  readonly manager: ConfigManager
  /** The key that the first start on an empty store made; shown once. */
  readonly firstKey: string | undefined
  /** Finishes what runs, makes everything durable, closes. */
  stop(): Promise<void>
  /** A stop that runs waits for no client any more. */
  hurry(): void
}

export interface GatewayOptions {
  /** Path of `gateway.yaml`. */
  readonly config: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  /** The operator asks for a drain over the admin listener. */
  onDrain(): void
}

/** What is open, to be closed in reverse order. */
class Open {
  readonly #closers: (() => unknown)[] = []

  add(close: () => unknown): void {
    this.#closers.push(close)
  }

  async close(): Promise<void> {
    for (let close = this.#closers.pop(); close; close = this.#closers.pop()) await close()
  }
}

/** Throws a ConfigError, a StoreError, or what the operating system says of an address; then nothing is left open. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const open = new Open()
  try {
    return await assemble(options, open)
  } catch (thrown) {
    await open.close()
    throw thrown
  }
}

async function assemble(options: GatewayOptions, open: Open): Promise<Gateway> {
  const { config, log } = options
  const { value: file } = await loadGateway(config, options)
  const folder = dirname(resolve(config))
  const database = resolve(folder, file.stores.sqlite)
  const registry = new Registry()

  const stores = openStores(database, {
    warn: err => log.warn({ err }, 'a store task failed and is tried again'),
    keyring: () => keyring,
  })
  open.add(() => stores.close())
  const keyring = new Keyring({ given: options.env.GATEWAY_MASTER_KEY, file: keyFile(database) })
  const missing = (await stores.policies.providerKeys.keyVersions()).filter(name => !keyring.versions.includes(name))
  if (missing.length > 0) log.error({ missing }, 'master keys are missing: provider keys under them cannot be used')
  await stores.ledger.recover()
  const firstKey = await bootstrap(stores)
  const lag = new Lag()
  open.add(() => lag.close())
  const memory = new Memory()
  open.add(() => memory.close())
  const load = { lagMs: () => lag.lagMs(), memory: () => memory.share }
  const metrics = new PrometheusMetrics({ version, lag })
  const allowPrivate = options.env.GATEWAY_ALLOW_PRIVATE_PROVIDERS === 'true'
  const transport = new Transport({ allowPrivate })
  open.add(() => transport.close())
  const demo = await startDemo()
  open.add(() => demo.close())

  const reloads = new Reloads(metrics, log)
  const { wires, filters, endpoints } = registry
  const policyParts = { stores: stores.policies, keyring, log, wires, endpoints, allowPrivate }
  const policies = new OrganizationPolicies(policyParts)
  const room = new ByteRoom(file.server.buffer, load)
  const media = new ImageFetcher({ allowed: file.server.fetch_from ?? [] })
  const services = servicesOf(stores, policies, { metrics, load, log, room, media })
  const manager = new ConfigManager({
    path: config,
    env: { ...options.env, GATEWAY_DEMO_URL: demo.url },
    registries: { wires, filters, endpoints, services, terminal: terminal(transport) },
    loadPlugins: plugins => registry.load(plugins),
    onResult: result => reloads.note(result),
  })
  await manager.start()
  reloads.started(manager.current.version)

  const current = () => manager.current
  const { server } = file
  const listener = new Listener({
    listen: server.listen ?? DEFAULT_LISTEN,
    pace: { heartbeat: server.heartbeat, hold: server.hold, request: server.request_timeout },
    headerTimeout: server.header_timeout,
    writeStall: server.write_stall,
    maxConnections: server.max_connections,
    ...{ current, room, load, metrics, log },
  })
  const context: AdminContext = {
    ...portsOf(stores),
    policies: policyAdmin(policyParts, policies, () => manager.current.catalog),
    metrics,
    drain: options.onDrain,
    ...operations(manager, listener, reloads),
    explainRoute: question => explainRoute(manager.current, services, question),
  }
  const token = adminToken(join(dirname(database), 'admin.token'))
  const admin = await adminListener({ listen: file.server.admin ?? DEFAULT_ADMIN, token, log, context })
  open.add(() => admin.close())
  await listener.listen()
  open.add(() => listener.drain({ delay: server.drain_delay, drain: server.drain ?? DEFAULT_DRAIN_MS }))
  for (const { codec } of endpoints) codec.prepare?.()
  lag.forget()

  const unwatch = await watchConfig({
    paths: () => manager.paths,
    // A refusal has been reported by onResult.
    onChange: () => manager.reload().catch(() => undefined),
    onError: err => log.error({ err }, 'the configuration cannot be watched; use `gatewayctl reload`'),
  })
  open.add(unwatch)
  const sweep = setInterval(() => void recoverOrphans(stores, log), ORPHAN_SWEEP_MS)
  sweep.unref()
  open.add(() => clearInterval(sweep))
  const { keep_requests: keep } = file.stores
  if (keep !== undefined) open.add(pruneRegularly(stores, keep, log))
  const stop = () => open.close()
  return { listen: listener.address, admin: admin.address, manager, firstKey, stop, hurry: () => listener.hurry() }
}

/** On an empty store: the default organization and project, and one key of it. */
async function bootstrap({ accounts }: Stores): Promise<string | undefined> {
  const project = await accounts.bootstrap()
  if (project === undefined) return undefined
  return (await accounts.createKey({ project, name: 'default' })).key
}

type ProcessServices = Pick<Services, 'metrics' | 'load' | 'log' | 'room' | 'media'>

const servicesOf = (stores: Stores, policies: Policies, process: ProcessServices): Services => ({
  version,
  database: stores,
  redis: undefined,
  keys: stores.keys,
  policies,
  ledger: stores.ledger,
  counters: new MemoryCounters(),
  cache: new MemoryCache(),
  ...process,
  measurements: new MemoryMeasurements(),
  circuits: new MemoryCircuits(),
  pins: new MemoryPins(),
  random: Math.random,
  now: Date.now,
})

/** Remembers how the last load of the configuration ended, and tells metrics and log. */
class Reloads {
  readonly #metrics: PrometheusMetrics
  readonly #log: Log
  readonly startedAt = Date.now()
  last: { ok: boolean; at: number; error?: string } = { ok: true, at: this.startedAt }

  constructor(metrics: PrometheusMetrics, log: Log) {
    this.#metrics = metrics
    this.#log = log
  }

  started(running: string): void {
    this.#metrics.reload('changed', running, this.startedAt)
  }

  note(result: ReloadResult): void {
    const { at, version: running } = result
    this.#metrics.reload(result.ok ? (result.changed ? 'changed' : 'unchanged') : 'failed', running, at)
    this.last = result.ok ? { ok: true, at } : { ok: false, at, error: String(result.error) }
    if (!result.ok) this.#log.error({ running }, `the new configuration is refused: ${result.error}`)
    else if (result.restartNeeded.length > 0) {
      this.#log.warn(
        { files: result.restartNeeded },
        'restart needed: these plugins have changed since they were loaded',
      )
    } else if (result.changed) this.#log.info({ running }, 'the new configuration is in force')
  }
}

const portsOf = (stores: Stores) => {
  const { accounts, organizations, projects, members, credits, plans, audit, names, usage, ping } = stores
  return { accounts, organizations, projects, members, credits, plans, audit, names, usage, ping }
}

/** What the operator may see and do of the process. */
const operations = (
  manager: ConfigManager,
  listener: Listener,
  reloads: Reloads,
): Pick<AdminContext, 'snapshot' | 'reload' | 'config' | 'state'> => ({
  snapshot: () => manager.current,
  reload: () => manager.reload(),
  config: () => effectiveConfig(manager.current.files),
  state: () => ({
    version,
    uptimeMs: Date.now() - reloads.startedAt,
    pid: process.pid,
    listen: listener.address,
    ready: listener.accepting,
    inFlight: listener.inFlight,
    lastReload: reloads.last,
  }),
})

/** Drops request rows that are older than `keepMs`, now and then. Returns what ends that. */
function pruneRegularly({ retention }: Stores, keepMs: number, log: Log): () => Promise<void> {
  let ended = false
  const prune = async () => {
    try {
      while (!ended && (await retention.prune(Date.now() - keepMs)) > 0);
    } catch (err) {
      log.warn({ err }, 'old request rows could not be dropped')
    }
  }
  let running = prune()
  const timer = setInterval(() => {
    running = running.then(prune)
  }, PRUNE_MS)
  timer.unref()
  return () => {
    ended = true
    clearInterval(timer)
    return running
  }
}

async function recoverOrphans({ ledger }: Stores, log: Log): Promise<void> {
  try {
    const orphans = await ledger.recover()
    if (orphans > 0) log.warn({ orphans }, 'requests of a process that ended are listed as orphaned')
  } catch (err) {
    log.warn({ err }, 'orphaned requests could not be looked for')
  }
}
