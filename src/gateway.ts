/** Puts a gateway together: stores, configuration, listeners; and takes it apart again. */
import { dirname, join, resolve } from 'node:path'
import type { AdminContext } from './admin/context.ts'
import { adminListener } from './admin/server.ts'
import { adminToken } from './admin/token.ts'
import { effectiveConfig } from './config/effective.ts'
import { loadGateway } from './config/load.ts'
import { ConfigManager, type ReloadResult } from './config/manager.ts'
import { watchConfig } from './config/watch.ts'
import type { Log, Services } from './core/ports.ts'
import { startDemo } from './demo/server.ts'
import { Listener } from './http/server.ts'
import { Registry } from './registry.ts'
import { MemoryCache } from './stores/memory/cache.ts'
import { MemoryCounters } from './stores/memory/counters.ts'
import { openStores, type Stores } from './stores/sqlite/index.ts'
import { Lag } from './telemetry/lag.ts'
import { PrometheusMetrics } from './telemetry/metrics.ts'
import { terminal } from './upstream/terminal.ts'
import { Transport } from './upstream/transport.ts'
import { version } from './version.ts'

const DEFAULT_LISTEN = '127.0.0.1:8080'
const DEFAULT_ADMIN = '127.0.0.1:9901'
const DEFAULT_DRAIN_MS = 30_000
const ORPHAN_SWEEP_MS = 5_000

export interface Gateway {
  /** `host:port`, as they came to be. */
  readonly listen: string
  readonly admin: string
  readonly manager: ConfigManager
  /** The key that the first start on an empty store made; shown once. */
  readonly firstKey: string | undefined
  /** Finishes what runs, makes everything durable, closes. */
  stop(): Promise<void>
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
  if (file.catalog.plugins) await registry.load(resolve(folder, file.catalog.plugins))

  const stores = openStores(database, { warn: err => log.warn({ err }, 'a store task failed and is tried again') })
  open.add(() => stores.close())
  await stores.ledger.recover()
  const firstKey = await bootstrap(stores)
  const lag = new Lag()
  open.add(() => lag.close())
  const metrics = new PrometheusMetrics({ version, lag })
  const transport = new Transport()
  open.add(() => transport.close())
  const demo = await startDemo()
  open.add(() => demo.close())

  const reloads = new Reloads(metrics, log)
  const { wires, filters, endpoints } = registry
  const services = servicesOf(stores, metrics, lag, log)
  const manager = new ConfigManager({
    path: config,
    env: { ...options.env, GATEWAY_DEMO_URL: demo.url },
    registries: { wires, filters, endpoints, services, terminal: terminal(transport) },
    onResult: result => reloads.note(result),
  })
  await manager.start()
  reloads.started(manager.current.version)

  const current = () => manager.current
  const listener = new Listener({ listen: file.server.listen ?? DEFAULT_LISTEN, current, metrics, log })
  const context = { ...portsOf(stores), metrics, drain: options.onDrain, ...operations(manager, listener, reloads) }
  const token = adminToken(join(dirname(database), 'admin.token'))
  const admin = await adminListener({ listen: file.server.admin ?? DEFAULT_ADMIN, token, log, context })
  open.add(() => admin.close())
  await listener.listen()
  open.add(() => listener.drain(file.server.drain ?? DEFAULT_DRAIN_MS))
  for (const { codec } of endpoints) codec.prepare?.()

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
  return { listen: listener.address, admin: admin.address, manager, firstKey, stop: () => open.close() }
}

/** On an empty store: the default organization and project, and one key of it. */
async function bootstrap({ accounts }: Stores): Promise<string | undefined> {
  const project = await accounts.bootstrap()
  if (project === undefined) return undefined
  return (await accounts.createKey({ project, name: 'default' })).key
}

const servicesOf = (stores: Stores, metrics: PrometheusMetrics, load: Lag, log: Log): Services => ({
  version,
  database: stores,
  redis: undefined,
  keys: stores.keys,
  ledger: stores.ledger,
  counters: new MemoryCounters(),
  cache: new MemoryCache(),
  metrics,
  log,
  load,
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
    else if (result.changed) this.#log.info({ running }, 'the new configuration is in force')
  }
}

const portsOf = ({ accounts, usage, ledger, keys, ping }: Stores) => ({ accounts, usage, ledger, keys, ping })

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

async function recoverOrphans({ ledger }: Stores, log: Log): Promise<void> {
  try {
    const orphans = await ledger.recover()
    if (orphans > 0) log.warn({ orphans }, 'requests of a process that ended are listed as orphaned')
  } catch (err) {
    log.warn({ err }, 'orphaned requests could not be looked for')
  }
}
