/** How late the event loop runs: a smoothed value for admission, a distribution for the metrics. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Load } from '../core/ports.ts'

const TICK_MS = 100
const RESOLUTION_MS = 10

/** Seconds. Quantiles are of the time since the previous call, `sum` and `count` of the whole life. */
export interface LagSample {
  readonly p50: number
  readonly p99: number
  readonly max: number
  readonly sum: number
  readonly count: number
}

/**
 * `lagMs()` halves what it remembers every 100 ms, so that one long tick does not shed load for seconds, while a
 * loop that stays late is seen within two ticks; a tick that is overdue at the time of the call counts already.
 */
export class Lag implements Load {
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  readonly #timer: NodeJS.Timeout
  readonly #now: () => number
  #due: number
  #smoothed = 0
  #sum = 0
  #count = 0

  /** `now` is a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#due = now() + TICK_MS
    this.#delay.enable()
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
    this.#timer.unref()
  }

  lagMs(): number {
    return Math.max(this.#smoothed, (this.#smoothed + this.#now() - this.#due) / 2)
  }

  /** What was measured since the last call. The monitor's values hold its own interval, which is taken off. */
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

  close(): void {
    clearInterval(this.#timer)
    this.#delay.disable()
  }

  #tick(): void {
    const now = this.#now()
    this.#smoothed = (this.#smoothed + Math.max(0, now - this.#due)) / 2
    this.#due = now + TICK_MS
  }
}

const lateness = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1000)
