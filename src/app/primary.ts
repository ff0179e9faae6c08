/** Leads the workers of a gateway: `server.workers` above 1. */
import { fileURLToPath } from 'node:url'
import { outsideValues } from '../config/load.ts'
import type { PoolState } from '../core/ports.ts'
import { worstHealth } from '../routing/provider-health.ts'
import { countersOf, exposition, type MetricFamily, merge } from '../telemetry/merge.ts'
import { Pool } from '../workers/pool.ts'
import type { WorkerState } from '../workers/protocol.ts'
import { type Components, drainTimes, healthIn } from './components.ts'
import { processState, type ServingMode } from './serving.ts'

/** The bundle places it beside this module. */
const ENTRY = fileURLToPath(new URL('./worker.js', import.meta.url))
/** Time for a worker to abort, report and flush after its drain. */
const CLOSING_MS = 20_000
/** How often files may change while processes reload. */
const ROUNDS = 3

/** Settings to start workers with; `count` is their number. */
export interface PrimaryOptions {
  readonly count: number
  /** Path of `gateway.yaml`. */
  readonly config: string
}

/** Serves by workers: metrics, state and reloads are those of all processes together. */
export function leadingProcess(components: Components, { count, config }: PrimaryOptions): ServingMode {
  const { manager, metrics, log, registry, reloads, stores, found } = components
  const pool: Pool = new Pool({
    ...{ entry: ENTRY, count, log },
    begin: () => ({
      ...{ config, files: manager.current.files, plugins: registry.modules },
      storesIdentity: stores.identity,
    }),
    onReady: configVersion => {
      void pool.callAll('found', found.all())
      // The worker may have replaced one whose reload failed.
      const settled = configVersion === manager.current.version && reloads.last.ok
      if (pool.ready && !settled) void reload().catch(() => undefined)
    },
    onEnd: pid => sums.retire(pid),
    renew: provider => renew(provider),
  })
  found.onChange = lists => void pool.callAll('found', lists)
  const scrape = async () => {
    const own = await metrics.families()
    const { answers } = await pool.callAll('metrics', null)
    return { own, workers: answers as ReadonlyMap<number, MetricFamily[]> }
  }
  const sums = new Sums(scrape, pid => pool.has(pid))

  let turn: Promise<unknown> = Promise.resolve()
  /** Ends one reload of all processes before the next begins: a command may print another secret each time. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const run = turn.then(work)
    turn = run.catch(() => undefined)
    return run
  }
  const reload: ServingMode['reload'] = () => inTurn(async () => spread(await manager.reload()))
  const renew: ServingMode['renew'] = provider =>
    inTurn(async () => {
      const result = await manager.renew(provider)
      if (result?.changed) await spread(result)
    })
  /** Reloads until all processes run one version: files may change between the readings of two processes. */
  const spread = async (result: Awaited<ReturnType<typeof manager.reload>>) => {
    for (let round = 1; ; round++) {
      const secrets = outsideValues(manager.current.files).map(({ name, value }) => [name, value] as const)
      const { answers, errors } = await pool.callAll('reload', Object.fromEntries(secrets))
      const { version } = manager.current
      const others = [
        ...[...errors].map(([pid, { message }]) => ({ pid, says: message })),
        ...[...answers].flatMap(([pid, other]) => (other === version ? [] : [{ pid, says: `it runs on ${other}` }])),
        // A worker that ended meanwhile reads the configuration at its next start.
      ].filter(({ pid }) => pool.has(pid))
      const [first] = others
      if (!first) return { ...result, version, changed: version !== result.previous }
      if (round === ROUNDS) {
        const error = `worker ${first.pid} does not run on configuration ${version}: ${first.says}`
        reloads.note({ ok: false, error, version, at: Date.now() })
        throw new Error(error)
      }
      log.warn({ version, others, round }, 'workers run different configurations; reloading')
      await manager.reload()
    }
  }

  return {
    get address() {
      return pool.address
    },
    metrics: { contentType: metrics.contentType, text: () => sums.text() },
    listen: () => pool.start(),
    reload,
    renew,
    async state() {
      const workers = await pool.states()
      const inFlight = workers.reduce((sum, worker) => sum + worker.inFlight, 0)
      const own = processState(components)
      return {
        ...own,
        pools: own.pools?.map(pool => sumOf(pool, workers)),
        listen: pool.address,
        ready: pool.ready && workers.some(worker => worker.ready),
        inFlight,
        workers,
      }
    },
    explainRoute: question => pool.callOne('explain', question),
    async providerHealth() {
      const { answers } = await pool.callAll('health', null)
      // While no worker serves, no provider was tried.
      return answers.size > 0 ? worstHealth([...answers.values()]) : healthIn(components)
    },
    async drain() {
      const { delay, drain } = drainTimes(components)
      await pool.drain(delay + drain + CLOSING_MS)
    },
    abortDrain: () => pool.abortDrain(),
  }
}

/** Adds what the workers have of a pool. */
const sumOf = (own: PoolState, workers: readonly WorkerState[]): PoolState => {
  const all = [own, ...workers.flatMap(({ pools = [] }) => pools.filter(({ name }) => name === own.name))]
  const sum = (field: 'inUse' | 'most' | 'waiting') => all.reduce((sum, pool) => sum + pool[field], 0)
  return { name: own.name, inUse: sum('inUse'), most: sum('most'), waiting: sum('waiting') }
}

interface Scrape {
  readonly own: MetricFamily[]
  readonly workers: ReadonlyMap<number, MetricFamily[]>
}

/** The summed metrics of all processes. A process that ended counts with its last scraped values. */
class Sums {
  readonly #scrape: () => Promise<Scrape>
  readonly #lives: (pid: number) => boolean
  #ended: MetricFamily[] = []
  readonly #last = new Map<number, MetricFamily[]>()

  constructor(scrape: () => Promise<Scrape>, lives: (pid: number) => boolean) {
    this.#scrape = scrape
    this.#lives = lives
  }

  async text(): Promise<string> {
    const { own, workers } = await this.#scrape()
    // The retired sums already include workers that ended during the scrape.
    for (const [pid, families] of workers) if (this.#lives(pid)) this.#last.set(pid, families)
    // A worker that did not answer counts with its last values, so that no sum decreases.
    return exposition(merge([own, ...this.#last.values(), this.#ended]))
  }

  retire(pid: number): void {
    const last = this.#last.get(pid)
    if (!last) return
    this.#last.delete(pid)
    this.#ended = merge([this.#ended, countersOf(last)])
  }
}
