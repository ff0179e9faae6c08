/** Puts a gateway together: stores, configuration, listeners; and takes it apart again. */
import { dirname, join, resolve } from 'node:path'
import { type AdminListener, adminListener } from './admin/server.ts'
import { adminToken } from './admin/token.ts'
import { effectiveConfig } from './config/effective.ts'
import { loadGateway } from './config/load.ts'
import { ConfigManager, type ReloadResult } from './config/manager.ts'
import { watchConfig } from './config/watch.ts'
import type { Log, Services } from './core/ports.ts'
import { type Demo, startDemo } from './demo/server.ts'
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
  readonly listen: string
  readonly admin: string
  readonly manager: ConfigManager
  /** The key of an empty store's first start; shown once. */
  readonly firstKey: string | undefined
  reload(): void
  /** Finishes what runs, makes everything durable, closes. A second call returns the first one's promise. */
  stop(): Promise<void>
}

export interface GatewayOptions {
  /** Path of `gateway.yaml`. */
  readonly config: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  /** Called when the operator asks for a drain over the admin listener. */
  onDrain(): void
}

/** Throws a ConfigError, a StoreError, or what the operating system says of an address; then nothing is left open. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, log } = options
  const startedAt = Date.now()
  const closers: (() => unknown)[] = []
  const stopAll = async () => {
    for (const close of closers.reverse()) await close()
  }
  try {
    return await assemble()
  } catch (thrown) {
    await stopAll()
    throw thrown
  }

  async function assemble(): Promise<Gateway> {
    const { value: file } = await loadGateway(config, options)
    const folder = dirname(resolve(config))
    const database = resolve(folder, file.stores.sqlite)
    const registry = new Registry()
    if (file.catalog.plugins) await registry.load(resolve(folder, file.catalog.plugins))

    const stores = openStores(database, {
      warn: err => log.warn({ err }, 'a store task failed and will be tried again'),
    })
    closers.push(() => stores.close())
    await stores.ledger.recover()
    const firstKey = await bootstrap(stores)

    const lag = new Lag()
    closers.push(() => lag.close())
    const metrics = new PrometheusMetrics({ version, lag })
    const transport = new Transport()
    closers.push(() => transport.close())
    const demo: Demo = await startDemo()
    closers.push(() => demo.close())

    const services: Services = {
      version,
      database: stores,
      redis: undefined,
      keys: stores.keys,
      ledger: stores.ledger,
      counters: new MemoryCounters(),
      cache: new MemoryCache(),
      metrics,
      log,
      load: lag,
      now: Date.now,
    }
    let lastReload: { ok: boolean; at: number; error?: string } = { ok: true, at: startedAt }
    const onResult = (result: ReloadResult) => {
      const kind = result.ok ? (result.changed ? 'changed' : 'unchanged') : 'failed'
      metrics.reload(kind, result.version, result.at)
      lastReload = { ok: result.ok, at: result.at, ...(result.ok ? {} : { error: String(result.error) }) }
      if (!result.ok)
        log.error({ version: result.version }, `configuration refused, the old one stays: ${result.error}`)
      else if (result.changed) log.info({ version: result.version }, 'configuration reloaded')
    }
    const manager = new ConfigManager({
      path: config,
      env: { ...options.env, GATEWAY_DEMO_URL: demo.url },
      registries: {
        wires: registry.wires,
        filters: registry.filters,
        endpoints: registry.endpoints,
        services,
        terminal: terminal(transport),
      },
      onResult,
    })
    await manager.start()
    onResult({ ok: true, changed: true, version: manager.current.version, at: startedAt })

    const listener = new Listener({
      listen: file.server.listen ?? DEFAULT_LISTEN,
      current: () => manager.current,
      metrics,
      log,
    })
    let ready = true
    const listen = await listener.listen()
    closers.push(() => listener.drain(file.server.drain ?? DEFAULT_DRAIN_MS))
    const admin: AdminListener = await adminListener({
      listen: file.server.admin ?? DEFAULT_ADMIN,
      token: adminToken(join(dirname(database), 'admin.token')),
      log,
      context: {
        snapshot: () => manager.current,
        reload: () => manager.reload(),
        config: () => effectiveConfig(manager.current.files),
        accounts: stores.accounts,
        usage: stores.usage,
        ledger: stores.ledger,
        keys: stores.keys,
        metrics,
        state: () => ({
          version,
          uptimeMs: Date.now() - startedAt,
          pid: process.pid,
          listen,
          ready,
          inFlight: listener.inFlight,
          lastReload,
        }),
        drain: options.onDrain,
        ping: () => stores.ping(),
      },
    })
    // Closed before the listener drains would blind the operator, so the order of `stop` is its own.
    const reload = () => void manager.reload().catch(() => undefined)
    const unwatch = await watchConfig({
      paths: () => manager.paths,
      // Refusals have been reported by onResult.
      onChange: () => manager.reload().catch(() => undefined),
      onError: err => log.error({ err }, 'the configuration cannot be watched; use `gatewayctl reload`'),
    })
    const sweep = setInterval(() => void recoverOrphans(stores, log), ORPHAN_SWEEP_MS)
    sweep.unref()

    let stopping: Promise<void> | undefined
    const stop = async () => {
      ready = false
      clearInterval(sweep)
      await unwatch()
      await listener.drain(file.server.drain ?? DEFAULT_DRAIN_MS)
      closers.pop()
      await admin.close()
      await stopAll()
    }
    return { listen, admin: admin.address, manager, firstKey, reload, stop: () => (stopping ??= stop()) }
  }
}

/** On an empty store: the default organization and project, and one key of it. */
async function bootstrap({ accounts }: Stores): Promise<string | undefined> {
  const project = await accounts.bootstrap()
  if (project === undefined) return undefined
  return (await accounts.createKey({ project, name: 'default' })).key
}

async function recoverOrphans({ ledger }: Stores, log: Log): Promise<void> {
  try {
    const orphans = await ledger.recover()
    if (orphans > 0) log.warn({ orphans }, 'requests of a process that ended were listed as orphaned')
  } catch (err) {
    log.warn({ err }, 'orphaned requests could not be looked for')
  }
}
