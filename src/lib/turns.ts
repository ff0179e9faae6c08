/** Turns of the event loop for long work that is done in steps, in fair shares. */

/**
 * A step that took so long, in milliseconds, is followed by a pause as long as itself, up to the longest one: half of the
 * loop is for others.
 */
const LONG_MS = 4
const LONGEST_PAUSE_MS = 100

/** What a tenant has to do. */
interface Waiting {
  /** Work in the order in which it came: what it makes takes memory until its end, so that one at a time goes on. */
  readonly works: (() => boolean)[]
  /** Who waits for a turn. */
  readonly callers: (() => void)[]
  /** The last turn was one of `works`. */
  worked: boolean
}

/** The queue of an event loop. Tenants take turns; so do the works of a tenant and its callers of `next`. */
export class Turns {
  /** In their order: a tenant that had its turn comes last. */
  readonly #waiting = new Map<string, Waiting>()
  #running = false
  /** When the last step began, and when the next one may. */
  #began = 0
  #free = 0

  /** All steps of `steps`. The tenant's next work begins when they are done. */
  run<T>(tenant: string, steps: Generator<undefined, T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const work = (): boolean => {
        try {
          const { done, value } = steps.next()
          if (done) resolve(value)
          return done === true
        } catch (thrown) {
          reject(thrown)
          return true
        }
      }
      this.#of(tenant).works.push(work)
      this.#start()
    })
  }

  /** Waits for a turn of the tenant; what follows at once is one step. */
  next(tenant: string): Promise<void> {
    return new Promise(resolve => {
      this.#of(tenant).callers.push(resolve)
      this.#start()
    })
  }

  #of(tenant: string): Waiting {
    let waiting = this.#waiting.get(tenant)
    if (!waiting) {
      waiting = { works: [], callers: [], worked: false }
      this.#waiting.set(tenant, waiting)
    }
    return waiting
  }

  #start(): void {
    if (this.#running) return
    this.#running = true
    const pause = Math.min(this.#free - performance.now(), LONGEST_PAUSE_MS)
    if (pause > 0) setTimeout(this.#schedule, pause)
    else this.#schedule()
  }

  readonly #schedule = (): void => {
    setImmediate(this.#turn)
    // Behind it in the same turn of the loop, when all has been done that goes on behind the step.
    setImmediate(this.#rest)
  }

  readonly #turn = (): void => {
    this.#began = performance.now()
    this.#step()
  }

  readonly #rest = (): void => {
    const now = performance.now()
    const took = now - this.#began
    if (took >= LONG_MS) this.#free = now + took
    this.#running = false
    if (this.#waiting.size > 0) this.#start()
  }

  #step(): void {
    const [first] = this.#waiting
    if (!first) return
    const [tenant, waiting] = first
    const { works, callers } = waiting
    this.#waiting.delete(tenant)
    waiting.worked = works.length > 0 && !(waiting.worked && callers.length > 0)
    if (!waiting.worked) callers.shift()!()
    else if (works[0]!()) works.shift()
    if (works.length + callers.length > 0) this.#waiting.set(tenant, waiting)
  }
}

/** All steps in this turn: of work that is short. */
export function atOnce<T>(steps: Generator<undefined, T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** The queue of this thread: all that would keep its event loop from others is done in these turns. */
export const turns = new Turns()
