/** Leads the workers of a gateway: `server.workers` above 1. */
import { fileURLToPath } from 'node:url'
import { type Front, processState } from './front.ts'
import { drainTimes, type Parts } from './parts.ts'
import { countersOf, exposition, type MetricFamily, merge } from './telemetry/merge.ts'
import { Pool } from './workers/pool.ts'

/** Bundled beside this module. */
const ENTRY = fileURLToPath(new URL('./worker.js', import.meta.url))
/** For what a worker does after its drain: to abort, to say so, to keep it. */
const CLOSING_MS = 20_000
/** How often files may change while all are reading them. */
const ROUNDS = 3

export interface PrimaryOptions {
  readonly count: number
  /** Path of `gateway.yaml`. */
  readonly config: string
  /** Address of the simulated provider. */
  readonly demo: string
}

export function workerFront(parts: Parts, { count, config, demo }: PrimaryOptions): Front {
  const { manager, metrics, file, log } = parts
  const pool: Pool = new Pool({
    ...{ entry: ENTRY, count, log },
    begin: () => ({ config, demo, fixed: { server: file.server, stores: file.stores } }),
    onReady: configVersion => {
      if (pool.ready && configVersion !== manager.current.version) void reload().catch(() => undefined)
    },
    onEnd: pid => sums.retire(pid),
  })
  const scrape = async () => {
    const own = await metrics.families()
    return { own, workers: (await pool.ask('metrics', null)) as ReadonlyMap<number, MetricFamily[]> }
  }
  const sums = new Sums(scrape, pid => pool.has(pid))

  /** Until all run on one version: files may change between one process' reading and the other's. */
  const reload: Front['reload'] = async () => {
    const result = await manager.reload()
    const { version } = result
    for (let round = 1; round <= ROUNDS; round++) {
      const versions = [...(await pool.ask('reload', null)).values()]
      if (versions.every(other => other === manager.current.version)) break
      log.warn({ version, versions, round }, 'not all workers run on one configuration; it is read again')
      await manager.reload()
    }
    return { ...result, version: manager.current.version, changed: manager.current.version !== result.previous }
  }

  return {
    get address() {
      return pool.address
    },
    metrics: { contentType: metrics.contentType, text: () => sums.text() },
    listen: () => pool.start(),
    reload,
    async state() {
      const workers = await pool.states()
      const inFlight = workers.reduce((sum, worker) => sum + worker.inFlight, 0)
      return {
        ...processState(parts),
        listen: pool.address,
        ready: pool.ready && workers.some(worker => worker.ready),
        inFlight,
        workers,
      }
    },
    explainRoute: question => pool.askOne('explain', question),
    async drain() {
      const { delay, drain } = drainTimes(parts)
      await pool.drain(delay + drain + CLOSING_MS)
    },
    hurry: () => pool.hurry(),
  }
}

interface Scrape {
  readonly own: MetricFamily[]
  readonly workers: ReadonlyMap<number, MetricFamily[]>
}

/** The metrics of all processes. Whoever ends leaves what it had counted when it was last asked. */
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
    // Who has ended meanwhile is counted with the ended.
    for (const [pid, families] of workers) if (this.#lives(pid)) this.#last.set(pid, families)
    // Who has not answered counts as it did; so no sum falls.
    return exposition(merge([own, ...this.#last.values(), this.#ended]))
  }

  retire(pid: number): void {
    const last = this.#last.get(pid)
    if (!last) return
    this.#last.delete(pid)
    this.#ended = merge([this.#ended, countersOf(last)])
  }
}
