/** Puts a gateway together: stores, configuration, listeners; and takes it apart again. */
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import type { AdminContext } from '../admin/context.ts'
import { adminListener } from '../admin/server.ts'
import { adminToken } from '../admin/token.ts'
import { effectiveConfig } from '../config/effective.ts'
import { loadGateway } from '../config/load.ts'
import { watchConfig } from '../config/watch.ts'
import type { Catalog } from '../core/catalog.ts'
import type { Log, Stores } from '../core/ports.ts'
import { DEMO_URL } from '../demo/address.ts'
import { startDemo } from '../demo/server.ts'
import { operations } from '../operations/index.ts'
import { Discovery } from '../upstream/discovery.ts'
import {
  type CleanupStack,
  type Components,
  createComponents,
  drainTimes,
  sweepRegularly,
  withCleanup,
} from './components.ts'
import { runJobs } from './jobs.ts'
import { policyAdmin } from './policies.ts'
import type { PrimaryOptions } from './primary.ts'
import { type ServingMode, singleProcess } from './serving.ts'

const DEFAULT_ADMIN = '127.0.0.1:9901'
const PRUNE_MS = 600_000
/** What polls of jobs get to end in, before what clients wait for is drained. */
const POLL_GRACE_MS = 2_000

export interface Gateway {
  /** `host:port`, as they came to be. */
  readonly listen: string
  readonly admin: string
  /** Where clients reach it, if that is set. */
  readonly publicUrl: string | undefined
  /** Path of the database. */
  readonly database: string
  /** As it was read at the start. */
  readonly catalog: Catalog
  /** The key that the first start on an empty store made; shown once. */
  readonly firstKey: string | undefined
  /** Reads the configuration again. Rejects when it is refused, or a worker does not come along. */
  reload(): Promise<unknown>
  /** Finishes what runs, makes everything durable, closes. */
  stop(): Promise<void>
  /** A stop that runs waits for no client any more. */
  abortDrain(): void
}

export interface GatewayOptions {
  /** Path of `gateway.yaml`. */
  readonly config: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  /** The operator asks for a drain over the admin listener. */
  onDrain(): void
}

/** Throws a ConfigError, a StoreError, or what the operating system says of an address; then nothing is left open. */
export const startGateway = (options: GatewayOptions): Promise<Gateway> =>
  withCleanup(cleanup => assemble(options, cleanup))

async function assemble(options: GatewayOptions, cleanup: CleanupStack): Promise<Gateway> {
  const { config, log } = options
  const { value: file } = await loadGateway(config, options)
  const demo = await startDemo(Object.values(operations))
  cleanup.add(() => demo.close())
  const components = await createComponents(
    file,
    { config, env: { ...options.env, [DEMO_URL]: demo.url }, log },
    cleanup,
  )
  const { stores, manager, policies, policyContext, reloads } = components
  await stores.ledger.recover()
  await manager.start()
  reloads.started(manager.current.version)

  const count = workersOf(file.server.workers)
  const serving =
    count === 1 ? singleProcess(components) : await leadWorkers(components, { count, config, demo: demo.url })
  const { metrics, state, explainRoute } = serving
  const { found } = components
  const discovery = new Discovery({ catalog: () => manager.current.catalog, found, own: () => serving.address, log })
  const reload: ServingMode['reload'] = async () => {
    const result = await serving.reload()
    void discovery.look()
    return result
  }
  const context: AdminContext = {
    ...portsOf(stores),
    jobs: stores.jobs,
    jobRunner: components.jobs,
    ...{ metrics, state, reload, explainRoute },
    policies: policyAdmin(policyContext, policies, () => manager.current.catalog),
    snapshot: () => manager.current,
    config: () => effectiveConfig(manager.current.files),
    drain: options.onDrain,
  }
  const token = adminToken(join(dirname(components.database), 'admin.token'))
  const admin = await adminListener({ listen: file.server.admin ?? DEFAULT_ADMIN, token, log, context })
  cleanup.add(() => admin.close())
  let unwatched: Promise<void> | undefined
  cleanup.add(() => unwatched)
  await serving.listen()
  components.served.at = serving.address
  cleanup.add(() => serving.drain())
  void discovery.look()
  cleanup.add(() => discovery.close())
  // Create the first key last: a start that fails after this would lose it unprinted.
  const firstKey = (await stores.accounts.bootstrap())?.key

  const unwatch = await watchConfig({
    paths: () => manager.paths,
    // A refusal has been reported by `reloads`.
    onChange: () => reload().catch(() => undefined),
    onError: err => log.error({ err }, 'configuration watch failed; use gatewayctl reload'),
  })
  // The drain does not wait for a reload that runs.
  cleanup.add(() => {
    unwatched = unwatch()
  })
  sweepRegularly(components, cleanup)
  runJobs(
    components.jobs,
    { file, config, stores, log },
    Math.min(drainTimes(components).drain / 2, POLL_GRACE_MS),
    cleanup,
  )
  const { keep_requests: keep } = file.stores
  if (keep !== undefined) cleanup.add(pruneRegularly(stores, keep, log))
  const { catalog } = manager.current
  return {
    listen: serving.address,
    admin: admin.address,
    publicUrl: file.server.public_url,
    database: components.database,
    catalog,
    firstKey,
    reload,
    stop: () => cleanup.close(),
    abortDrain: serving.abortDrain,
  }
}

const workersOf = (given: number | 'auto'): number => (given === 'auto' ? availableParallelism() : given)

/** Loaded when it is needed: a gateway of one process has nothing to do with it. */
async function leadWorkers(components: Components, options: PrimaryOptions): Promise<ServingMode> {
  const { leadingProcess } = await import('./primary.ts')
  return leadingProcess(components, options)
}

const portsOf = (stores: Stores) => {
  const { accounts, operatorSessions, organizations, projects, members, credits, plans, audit, names, usage, ping } =
    stores
  return { accounts, operatorSessions, organizations, projects, members, credits, plans, audit, names, usage, ping }
}

/** Drops request rows that are older than `keepMs`, now and then. Returns what ends that. */
function pruneRegularly({ retention }: Stores, keepMs: number, log: Log): () => Promise<void> {
  let ended = false
  const prune = async () => {
    try {
      while (!ended && (await retention.prune(Date.now() - keepMs)) > 0);
    } catch (err) {
      log.warn({ err }, 'request row retention failed')
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
