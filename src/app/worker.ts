/** One worker of a gateway: serves the shared public port and follows the primary process. */
import cluster from 'node:cluster'
import { ConfigError } from '../config/error.ts'
import { type ConfigFiles, revived } from '../config/load.ts'
import type { Log } from '../core/ports.ts'
import { DEMO_BASE_URL, DEMO_URL } from '../demo/address.ts'
import { GivenSecrets } from '../references/given.ts'
import { explainRoute } from '../routing/explain.ts'
import { MemoryCache } from '../stores/memory/cache.ts'
import { SharedAffinity } from '../stores/workers/affinity.ts'
import { SharedCircuits } from '../stores/workers/circuits.ts'
import { LeasedCounters } from '../stores/workers/counters.ts'
import { SharedTurns } from '../stores/workers/turns.ts'
import { createLog, logLevel } from '../telemetry/log.ts'
import { Channel } from '../workers/channel.ts'
import type { PrimaryCalls, WorkerCalls } from '../workers/protocol.ts'
import { type CleanupStack, withCleanup } from './cleanup.ts'
import {
  type Components,
  createComponents,
  drainListener,
  healthIn,
  listenerOf,
  sweepRegularly,
  warmUp,
} from './components.ts'
import { tuneHeap } from './v8-flags.ts'

const FAILED = 1
/** Grace for forgotten handles after everything was closed, in milliseconds. */
const FORGOTTEN_MS = 1_000

const { env } = process
const startedAt = Date.now()
const primary: Channel<PrimaryCalls> = new Channel(
  {
    send: message => void process.send!(message, undefined, undefined, () => undefined),
    onMessage: listener => void process.on('message', listener),
    // Node ends a worker whose primary has ended.
    onClose: () => undefined,
  },
  {
    state: () => worker!.state(),
    metrics: () => worker!.components.metrics.families(),
    reload: async values => {
      secrets.replace(values)
      return (await worker!.components.manager.reload()).version
    },
    explain: question => explainRoute(worker!.components.manager.current, worker!.components.services, question),
    health: () => healthIn(worker!.components),
    recall: ({ key, windowMs }) => counters.recall(key, windowMs),
    affinity: entries => sharedAffinity.learn(entries),
    cool: circuit => circuits.learn(circuit),
    found: lists => worker!.components.found.replace(lists),
    drain: () => stop(),
    abortDrain: () => worker?.abortDrain(),
  } satisfies WorkerCalls,
)
const secrets = new GivenSecrets()
const renew = (provider: string) => primary.call('renew', provider, Number.POSITIVE_INFINITY)
const counters = new LeasedCounters({
  take: request => primary.call('take', request, Number.POSITIVE_INFINITY),
  peek: request => primary.call('peek', request, Number.POSITIVE_INFINITY),
  giveBack: (key, windowMs, unused) => primary.notify('giveBack', { key, windowMs, unused }),
  enter: (key, limit) => primary.call('enter', { key, limit }, Number.POSITIVE_INFINITY),
  leave: key => primary.notify('leave', key),
  reserve: request => primary.call('reserve', request, Number.POSITIVE_INFINITY),
  correct: correction => primary.notify('correct', correction),
})
const circuits = new SharedCircuits(circuit => primary.notify('cool', circuit))
const sharedAffinity = new SharedAffinity(entries => primary.notify('affinity', entries))
/** A request continues without missing turns after this time. */
const TURNS_MS = 500
/** Budget of this process; the primary has four times as much. */
const TURNS_BYTES = 16 * 1024 * 1024
const turns = new SharedTurns(new MemoryCache({ maxBytes: TURNS_BYTES }), {
  keep: turn => primary.notify('keepTurn', turn),
  find: keys => primary.call('findTurns', keys, TURNS_MS),
})

interface Worker {
  readonly components: Components
  /** `host:port` in use. */
  readonly listen: string
  state(): ReturnType<WorkerCalls['state']>
  stop(): Promise<void>
  abortDrain(): void
}

let worker: Worker | undefined
let stopping = false
let signals = 0

// A signal may reach the whole process group; the effect equals a drain command of the primary.
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    signals++
    if (signals === 1) stop()
    else worker?.abortDrain()
  })
}
process.on('SIGHUP', () => undefined)

void main()

async function main(): Promise<void> {
  tuneHeap()
  try {
    const log = createLog(logLevel(env.GATEWAY_LOG_LEVEL), undefined, { worker: process.pid })
    for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
      process.on(event, (err: unknown) => {
        log.error({ err, event }, 'uncaught error; worker drains')
        process.exitCode = FAILED
        stop()
      })
    }
    worker = await withCleanup(cleanup => start(cleanup, log))
    primary.notify('ready', { listen: worker.listen, configVersion: worker.state().configVersion })
    if (stopping) await end(worker)
  } catch (thrown) {
    process.exitCode = FAILED
    const { code, port } = thrown as NodeJS.ErrnoException & { port?: number }
    primary.notify('failed', { message: messageOf(thrown), code, port })
    leave()
  }
}

const messageOf = (thrown: unknown): string =>
  thrown instanceof Error && !(thrown instanceof ConfigError) ? thrown.message : String(thrown)

async function start(cleanup: CleanupStack, log: Log): Promise<Worker> {
  const { config, files: json, plugins, storesIdentity } = await primary.call('begin', null)
  const files = revived(json as ConfigFiles)
  const given = { ...env, [DEMO_URL]: DEMO_BASE_URL }
  const file = files.gateway.value
  // With Redis, processes share through it.
  const shared = file.stores.redis === undefined ? { counters, circuits, affinity: sharedAffinity, turns } : undefined
  const components = await createComponents(
    file,
    { config, env: given, log, secrets, renew, storesIdentity, ...(shared && { shared }) },
    cleanup,
  )
  const { manager, reloads } = components
  await components.registry.adopt(plugins)
  await manager.start(files)
  reloads.started(manager.current.version)
  const listener = listenerOf(components)
  await listener.listen()
  components.served.at = listener.address
  cleanup.add(() => drainListener(listener, components))
  warmUp(components)
  sweepRegularly(components, cleanup)
  return {
    components,
    listen: listener.address,
    state: () => ({
      pid: process.pid,
      ready: listener.accepting,
      inFlight: listener.inFlight,
      configVersion: manager.current.version,
      uptimeMs: Date.now() - startedAt,
      pools: components.stores.nodes?.pools(),
    }),
    stop: () => cleanup.close(),
    abortDrain: () => listener.abortDrain(),
  }
}

/** Drains and ends, once. */
function stop(): void {
  if (stopping) return
  stopping = true
  if (worker) void end(worker)
}

async function end(ending: Worker): Promise<void> {
  try {
    await ending.stop()
  } catch (thrown) {
    console.error(`gateway: a worker: ${messageOf(thrown)}`)
    process.exitCode = FAILED
  }
  leave()
}

/** Disconnects; a handle that was not closed does not keep the process. */
function leave(): void {
  counters.close()
  cluster.worker!.disconnect()
  setTimeout(() => process.exit(), FORGOTTEN_MS).unref()
}
