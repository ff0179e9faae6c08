/** Fair shares of the event loop for work that takes long: large bodies, large answers, long lists. */

/** Scheduled work that may run ahead of its share of the loop, in milliseconds. */
const BURST_MS = 20
/** Scheduled work has one part in so many of the loop; small requests have the rest. */
const PARTS = 2

/** Milliseconds that only grow, and a call after some of them. */
export interface Clock {
  now(): number
  after(ms: number, then: () => void): void
}

const processClock: Clock = {
  now: () => performance.now(),
  after: (ms, then) => void setTimeout(then, ms),
}

/**
 * Runs work at once while scheduled work has used less than its share of the event loop. What comes beyond it waits in one
 * queue, in which tenants take turns.
 */
export class Scheduler {
  readonly #clock: Clock
  /** Waiting work by tenant. The tenant that was served last stands last. */
  readonly #waiting = new Map<string, (() => void)[]>()
  /** When the loop has caught up with the work done so far. */
  #evenAt = 0
  #isPlanned = false

  constructor(clock = processClock) {
    this.#clock = clock
  }

  /** The result of `work`, or a promise of it where `tenant` has to wait. Fails as `work` does. */
  run<T>(tenant: string, work: () => T | Promise<T>): T | Promise<T> {
    if (this.#waiting.size === 0 && this.#waitMs() <= 0) return this.#measure(work)
    return new Promise<T>((resolve, reject) => {
      const start = () => {
        try {
          resolve(this.#measure(work))
        } catch (thrown) {
          reject(thrown)
        }
      }
      const waiting = this.#waiting.get(tenant)
      if (waiting) waiting.push(start)
      else this.#waiting.set(tenant, [start])
      this.#plan()
    })
  }

  /** Returns what the last part returns. Each part is work of its own: other work comes in between. */
  async runAll<T>(tenant: string, parts: Iterator<void, T>): Promise<T> {
    for (;;) {
      const part = await this.run(tenant, () => parts.next())
      if (part.done) return part.value
    }
  }

  /** How long the next work has to wait. */
  #waitMs(): number {
    return this.#evenAt - this.#clock.now() - BURST_MS
  }

  #measure<T>(work: () => T): T {
    const began = this.#clock.now()
    try {
      return work()
    } finally {
      this.#evenAt = Math.max(this.#evenAt, began) + PARTS * (this.#clock.now() - began)
    }
  }

  #plan(): void {
    if (this.#isPlanned) return
    this.#isPlanned = true
    this.#clock.after(Math.max(1, this.#waitMs()), this.#serve)
  }

  readonly #serve = (): void => {
    this.#isPlanned = false
    for (const [tenant, [start, ...rest]] of this.#waiting) {
      if (this.#waitMs() > 0) break
      this.#waiting.delete(tenant)
      if (rest.length > 0) this.#waiting.set(tenant, rest)
      start!()
    }
    if (this.#waiting.size > 0) this.#plan()
  }
}

/** The scheduler of this thread. */
export const scheduler = new Scheduler()
