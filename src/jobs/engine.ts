/** Moves jobs on: claims what is due, polls it, delivers ends, and removes results. One for each process. */
import { Cancellation } from '../core/cancel.ts'
import type { Job, Lease } from '../core/ports.ts'
import { errors } from '../lib/error.ts'
import { shortId } from '../lib/id.ts'
import { Callbacks } from './callbacks.ts'
import type { JobsContext } from './context.ts'
import { eventFor, INTERRUPTED } from './ending.ts'
import { Poller } from './poller.ts'
import type { JobProvider } from './provider.ts'

/** No sleep is longer: other processes create jobs, too. */
const MAX_SLEEP_MS = 1_000
const MIN_SLEEP_MS = 10
/** Where something is due that cannot be claimed yet: other claims of its organization, or of all, must end first. */
const BLOCKED_SLEEP_MS = 250
const CLAIM_JOBS = 25
const LOST_MS = 30_000
const SWEEP_INTERVAL_MS = 600_000
const SWEEP_ROWS = 100

/** One loop of turns, woken by new jobs; claims expire when the process ends without `stop`. */
export class Engine {
  readonly #context: JobsContext
  readonly #owner = shortId()
  readonly #poller: Poller
  readonly #callbacks: Callbacks
  /** Claimed jobs, by id. */
  readonly #running = new Map<string, { readonly signal: Cancellation; readonly done: Promise<void> }>()
  #timer: NodeJS.Timeout | undefined
  #turn: Promise<void> | undefined
  #woken = false
  #stopped = true
  #lostAt = 0
  #sweptAt = 0
  /** The wall clock at the last turn, and the monotonic one. */
  #clock: readonly [wall: number, steady: number] | undefined

  constructor(context: JobsContext, provider: JobProvider) {
    this.#context = context
    this.#poller = new Poller(context, provider)
    this.#callbacks = new Callbacks(context, this.#owner, () => this.wake())
  }

  get poller(): Poller {
    return this.#poller
  }

  start(): void {
    this.#stopped = false
    this.wake()
  }

  /** Something is due. A hint: what it misses is found within a second. */
  wake(): void {
    this.#woken = true
    if (this.#stopped || this.#turn) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#turn = this.#run()
  }

  /** A lease of this process. */
  lease(limit = CLAIM_JOBS): Lease {
    const now = this.#context.now()
    return { owner: this.#owner, now, until: now + this.#context.options().lease, limit }
  }

  /** Takes nothing new, lets polls end for so long, and gives leases back. */
  async stop(graceMs: number): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#turn
    const polls = [...this.#running.values()]
    const timer = setTimeout(() => {
      for (const { signal } of polls) signal.abort(errors.shuttingDown())
    }, graceMs)
    await Promise.all([...polls.map(({ done }) => done), this.#callbacks.stop(graceMs)])
    clearTimeout(timer)
    await this.#context.store.release(this.#owner).catch(this.#report)
  }

  async #run(): Promise<void> {
    let sleep = MAX_SLEEP_MS
    try {
      this.#woken = false
      this.#dropAfterJump()
      await this.#lost()
      // One query, and no write, while nothing is due.
      const next = await this.#context.store.nextAt()
      const isDue = next !== undefined && next <= this.#context.now()
      const begun = isDue ? (await this.#claim()) + (await this.#callbacks.run()) : 0
      const swept = await this.#sweep(next)
      const following = isDue ? await this.#context.store.nextAt() : next
      sleep = this.#untilNext(following, begun + swept === 0 && isDue ? BLOCKED_SLEEP_MS : MIN_SLEEP_MS)
    } catch (err) {
      this.#report(err)
    }
    this.#turn = undefined
    if (this.#stopped) return
    if (this.#woken) {
      this.#turn = this.#run()
      return
    }
    this.#timer = setTimeout(() => this.wake(), sleep)
    this.#timer.unref()
  }

  /** After a jump of the clock by more than a lease, other processes may have claimed the jobs: all polls end. */
  #dropAfterJump(): void {
    const now = [this.#context.now(), performance.now()] as const
    const jump = this.#clock ? now[0] - this.#clock[0] - (now[1] - this.#clock[1]) : 0
    this.#clock = now
    if (Math.abs(jump) <= this.#context.options().lease) return
    for (const { signal } of this.#running.values()) signal.abort(errors.aborted())
  }

  async #lost(): Promise<void> {
    const now = this.#context.now()
    if (now - this.#lostAt < LOST_MS && now >= this.#lostAt) return
    this.#lostAt = now
    const [operation] = this.#context.kinds.values()
    if (!operation) return
    const lost = await this.#context.store.interruptLost(INTERRUPTED, () => eventFor(operation, 'failed'), now)
    if (lost > 0) this.#context.log.warn({ jobs: lost }, 'jobs lost during creation')
  }

  /** How many were claimed. */
  async #claim(): Promise<number> {
    const { concurrency } = this.#context.options()
    const free = concurrency - this.#running.size
    if (free <= 0) return 0
    // Neither one organization nor one provider that is slow takes all polls.
    const share = Math.max(1, Math.floor(concurrency / 2))
    const claimed = await this.#context.store.claim(this.lease(Math.min(CLAIM_JOBS, free)), share)
    for (const job of claimed) this.#begin(job)
    return claimed.length
  }

  #begin(job: Job): void {
    const signal = new Cancellation()
    const done = this.#poller.poll(job, signal).finally(() => {
      this.#running.delete(job.id)
      this.wake()
    })
    this.#running.set(job.id, { signal, done })
  }

  /** How many results it removed. */
  async #sweep(next: number | undefined): Promise<number> {
    const { store, blobs, options, now } = this.#context
    const due = next !== undefined && next <= now() ? await store.expireDue(now(), SWEEP_ROWS) : []
    for (const { result } of due) if (result?.kind === 'blob') await blobs.remove(result.blob)
    if (now() - this.#sweptAt >= SWEEP_INTERVAL_MS) {
      const before = now() - options().keep
      const alerts = (await this.#context.alerts?.prune(before, SWEEP_ROWS)) ?? 0
      const pruned = Math.max(alerts, await store.prune(before, SWEEP_ROWS))
      // Where there are more, the next turn goes on.
      if (pruned < SWEEP_ROWS) this.#sweptAt = now()
    }
    return due.length
  }

  #untilNext(next: number | undefined, leastMs: number): number {
    const isBusy = this.#running.size >= this.#context.options().concurrency
    if (next === undefined || isBusy) return MAX_SLEEP_MS
    return Math.max(leastMs, Math.min(MAX_SLEEP_MS, next - this.#context.now()))
  }

  readonly #report = (err: unknown): void => this.#context.log.warn({ err }, 'job claim failed; retried')
}
