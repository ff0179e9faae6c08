/** Load of the process: delay of the event loop, smoothed for admission and as a distribution for metrics, and its heap. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'

const TICK_MS = 100
const RESOLUTION_MS = 20
/** Weight of one tick against all earlier ones. */
const SAMPLE_WEIGHT = 1 / 4

/** Seconds. Quantiles cover the time since the previous call; `sum` and `count` the whole life of the process. */
interface LagSample {
  readonly p50: number
  readonly p99: number
  readonly max: number
  readonly sum: number
  readonly count: number
}

/** Milliseconds: `now` is monotonic, `used` is the CPU time of the process. */
interface LagClocks {
  now(): number
  used(): number
}

const clocks: LagClocks = {
  now: () => performance.now(),
  used() {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  },
}

/**
 * `lagMs()` decays by a quarter per tick of 100 ms: one stall, or the burst of a cold start, sheds no load, while a
 * loop that stays late shows within a few ticks. A tick overdue at the time of the call counts already. A tick counts
 * for at most the CPU time of the process in it: rejecting requests frees no time that other processes use.
 */
export class Lag {
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  readonly #timer: NodeJS.Timeout
  readonly #clocks: LagClocks
  #due: number
  #used: number
  #smoothed = 0
  #sum = 0
  #count = 0

  constructor(given: LagClocks = clocks) {
    this.#clocks = given
    this.#due = given.now() + TICK_MS
    this.#used = given.used()
    this.#delay.enable()
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
    this.#timer.unref()
  }

  lagMs(): number {
    const overdue = this.#clocks.now() - this.#due
    // Reading the CPU clock is a system call.
    if (overdue < TICK_MS) return this.#smoothed
    return Math.max(this.#smoothed, this.#with(overdue))
  }

  /** Measurements since the last call, less the interval of the monitor itself, which its values include. */
  sample(): LagSample {
    const { count, mean, max } = this.#delay
    if (count === 0) return { p50: 0, p99: 0, max: 0, sum: this.#sum, count: this.#count }
    const p50 = lateness(this.#delay.percentile(50))
    const p99 = lateness(this.#delay.percentile(99))
    this.#count += count
    this.#sum += lateness(mean) * count
    this.#delay.reset()
    return { p50, p99, max: lateness(max), sum: this.#sum, count: this.#count }
  }

  /** Resets the measurement: the lag of the start is not load. */
  forget(): void {
    this.#smoothed = 0
    this.#begin()
  }

  close(): void {
    clearInterval(this.#timer)
    this.#delay.disable()
  }

  #tick(): void {
    this.#smoothed = this.#with(Math.max(0, this.#clocks.now() - this.#due))
    this.#begin()
  }

  #begin(): void {
    this.#due = this.#clocks.now() + TICK_MS
    this.#used = this.#clocks.used()
  }

  #with(lateMs: number): number {
    const own = Math.min(lateMs, this.#clocks.used() - this.#used)
    return this.#smoothed + (own - this.#smoothed) * SAMPLE_WEIGHT
  }
}

const lateness = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1000)

const SAMPLE_MS = 250

/** Samples the used share of the heap limit four times a second; a sample costs microseconds. */
export class Memory {
  readonly #timer: NodeJS.Timeout
  #share = 0

  constructor() {
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS)
    this.#timer.unref()
    this.#sample()
  }

  /** From 0 to 1. Uncollected garbage counts as used; near the limit there is little of it. */
  get share(): number {
    return this.#share
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #sample(): void {
    const { used_heap_size, heap_size_limit } = getHeapStatistics()
    this.#share = used_heap_size / heap_size_limit
  }
}
