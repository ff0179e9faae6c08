/** Assembles a gateway: stores, configuration, listeners; and closes it. */
import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import type { AdminContext } from '../admin/context.ts'
import { adminListener } from '../admin/server.ts'
import { adminToken, writeAddress } from '../admin/token.ts'
import { effectiveConfig, referencesIn } from '../config/effective.ts'
import { DEFAULT_ADMIN } from '../config/environment.ts'
import { loadGateway } from '../config/load.ts'
import { watchConfig } from '../config/watch.ts'
import { warningsOf } from '../config/without-effect.ts'
import type { Catalog } from '../core/catalog.ts'
import type { Log, NodeStore, Stores, UsageStore } from '../core/ports.ts'
import { DEMO_BASE_URL, DEMO_URL } from '../demo/address.ts'
import { Secrets } from '../references/index.ts'
import { knowSecrets } from '../secrets/known.ts'
import { OidcSignIn } from '../ui/oidc.ts'
import { createUi } from '../ui/server.ts'
import { Discovery } from '../upstream/discovery.ts'
import { type CleanupStack, withCleanup } from './cleanup.ts'
import { type Components, createComponents, drainTimes, sweepRegularly } from './components.ts'
import { runJobs } from './jobs.ts'
import { policyAdmin } from './policies.ts'
import type { PrimaryOptions } from './primary.ts'
import { type ServingMode, singleProcess } from './serving.ts'

const HOUSEKEEPING_MS = 600_000
/** Time for polls of jobs to end, before client requests are drained. */
const POLL_GRACE_MS = 2_000

/** A gateway that has started. */
export interface Gateway {
  /** `host:port` in use. */
  readonly listen: string
  readonly admin: string
  /** Address at which clients reach the gateway, if configured. */
  readonly publicUrl: string | undefined
  /** Path of the database. */
  readonly database: string
  /** The catalogue at the start. */
  readonly catalog: Catalog
  /** The key created by the first start on an empty store; shown once. */
  readonly firstKey: string | undefined
  /** Reloads the configuration. Rejects when it is rejected, or when a worker fails to load it. */
  reload(): Promise<unknown>
  /** Drains requests, flushes the stores, closes. */
  stop(): Promise<void>
  /** Ends a running stop without waiting for clients. */
  abortDrain(): void
}

/** Settings to start a gateway with. */
interface GatewayOptions {
  /** Path of `gateway.yaml`. */
  readonly config: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  /** Called when an operator requests a drain over the admin listener. */
  onDrain(): void
}

/** Throws a ConfigError, a StoreError, or the listen error of the operating system; then nothing stays open. */
export const startGateway = (options: GatewayOptions): Promise<Gateway> =>
  withCleanup(cleanup => assemble(options, cleanup))

async function assemble(options: GatewayOptions, cleanup: CleanupStack): Promise<Gateway> {
  const { config } = options
  const secrets = new Secrets(options)
  const { value: file } = await loadGateway(config, { env: options.env, secrets })
  const count = workersOf(file.server.workers)
  const components = await createComponents(
    file,
    { config, env: { ...options.env, [DEMO_URL]: DEMO_BASE_URL }, log: options.log, secrets, serves: count === 1 },
    cleanup,
  )
  const { log, stores, manager, policies, policyContext, reloads } = components
  const orphans = await stores.ledger.recover()
  if (orphans > 0) log.warn({ orphans }, 'orphaned requests found')
  await manager.start()
  reloads.started(manager.current.version, await warningsOf(manager.current))

  const serving = count === 1 ? singleProcess(components) : await leadWorkers(components, { count, config })
  const { metrics, state, explainRoute, providerHealth } = serving
  const { found } = components
  const discovery = new Discovery({ catalog: () => manager.current.catalog, found, own: () => serving.address, log })
  const reload: ServingMode['reload'] = async () => {
    const result = await serving.reload()
    void discovery.look()
    return result
  }
  const context: AdminContext = {
    ...portsOf(stores),
    redis: components.redis,
    oauth: stores.oauth,
    jobs: stores.jobs,
    requests: stores.requests,
    contents: stores.contents,
    nodes: stores.nodes,
    jobRunner: components.jobs,
    ...{ metrics, state, reload, explainRoute, providerHealth },
    policies: policyAdmin(policyContext, policies, () => manager.current.catalog),
    snapshot: () => manager.current,
    config: () => effectiveConfig(manager.current.files),
    references: () => referencesIn(manager.current.files),
    drain: options.onDrain,
  }
  const tokenFile = join(dirname(components.database), 'admin.token')
  const token = adminToken(tokenFile)
  knowSecrets('admin token', [token])
  const oidc = new OidcSignIn(() => manager.current.files.gateway.value.admin.oidc, components.services)
  const page = createUi({ context, token, log, readConfig: configReader(config), oidc })
  const listen = file.server.admin ?? DEFAULT_ADMIN
  const admin = await adminListener({ listen, token, log, context, page, pageHost: () => oidc.hostname })
  cleanup.add(() => admin.close())
  writeAddress(tokenFile, admin.address)
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
    // `reloads` has reported a rejection.
    onChange: () => reload().catch(() => undefined),
    onError: err => log.error({ err }, 'configuration watch failed; use gatewayctl reload'),
  })
  // The drain does not wait for a running reload.
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
  cleanup.add(pruneRegularly(() => stores.retention.prune(Date.now() - keep), log, 'request rows'))
  cleanup.add(pruneRegularly(() => stores.responses.prune(), log, 'responses'))
  cleanup.add(pruneRegularly(() => stores.contents.prune(), log, 'contents of requests'))
  cleanup.add(pruneRegularly(() => stores.oauth.grants.sweep(), log, 'OAuth grants'))
  cleanup.add(sumRegularly(stores.usage, log))
  if (stores.nodes) await reportNode(stores.nodes, serving, log, cleanup)
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

/** Tells the other nodes where this one serves, and at once when it drains. */
async function reportNode(
  nodes: NodeStore,
  serving: Pick<ServingMode, 'address' | 'state'>,
  log: Log,
  cleanup: CleanupStack,
): Promise<void> {
  let draining = false
  const read = async () => ({ address: serving.address, inFlight: (await serving.state()).inFlight, draining })
  const report = () => nodes.report(read).catch((err: unknown) => log.warn({ err }, 'node report failed; repeated'))
  await report()
  cleanup.add(async () => {
    draining = true
    await report()
  })
}

const workersOf = (given: number | 'auto'): number => (given === 'auto' ? availableParallelism() : given)

/** Imported on demand: a gateway of one process does not need it. */
async function leadWorkers(components: Components, options: PrimaryOptions): Promise<ServingMode> {
  const { leadingProcess } = await import('./primary.ts')
  return leadingProcess(components, options)
}

/** Reads files below the parent of the configuration folder, by which errors name them. */
function configReader(config: string): (name: string) => Promise<string | undefined> {
  const root = dirname(dirname(resolve(config)))
  return async name => {
    const path = resolve(root, name)
    if (relative(root, path).startsWith('..')) return undefined
    return await readFile(path, 'utf8').catch(() => undefined)
  }
}

const portsOf = (stores: Stores) => {
  const { accounts, operatorSessions, organizations, projects, members, credits, plans, audit, names, usage, ping } =
    stores
  return { accounts, operatorSessions, organizations, projects, members, credits, plans, audit, names, usage, ping }
}

/** Deletes what is too old, some at a time, at intervals. Returns a function that stops it. */
const pruneRegularly = (drop: () => Promise<number>, log: Log, what: string): (() => Promise<void>) =>
  regularly(
    async () => (await drop()) > 0,
    err => log.warn({ err, of: what }, 'retention failed'),
  )

/** Adds up the usage of days that are over, some at a time, at intervals. Returns a function that stops it. */
function sumRegularly(usage: UsageStore, log: Log): () => Promise<void> {
  let last: number | undefined
  const work = async () => {
    const day = await usage.sumDay()
    if (last !== undefined && day !== last)
      log.info({ day: new Date(last).toISOString().slice(0, 10) }, 'usage of a day added up')
    last = day
    return day !== undefined
  }
  return regularly(work, err => {
    last = undefined
    log.warn({ err }, 'usage of a day not added up; read by the hour')
  })
}

/** Repeats `work` until it returns false or fails, at intervals. Returns a function that stops it. */
function regularly(work: () => Promise<boolean>, failed: (error: unknown) => void): () => Promise<void> {
  let ended = false
  const round = async () => {
    try {
      while (!ended && (await work()));
    } catch (err) {
      failed(err)
    }
  }
  let running = round()
  const timer = setInterval(() => {
    running = running.then(round)
  }, HOUSEKEEPING_MS)
  timer.unref()
  return () => {
    ended = true
    clearInterval(timer)
    return running
  }
}
