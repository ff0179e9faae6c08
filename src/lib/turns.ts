/** Turns of the event loop for long work that is done in steps, in fair shares. */
import { Pauses } from './pauses.ts'

/** A step that has taken less, in milliseconds, goes on with what would be a part of its own. */
const SHORT_MS = 1

/** What a tenant has to do. */
interface Waiting {
  /** Work in the order in which it came: what it makes takes memory until its end, so that one at a time goes on. */
  readonly works: (() => boolean)[]
  /** Who waits for a turn. */
  readonly callers: (() => void)[]
  /** The last turn was one of `works`. */
  worked: boolean
}

/** Milliseconds that only grow, and calls after some of them. */
export interface Clock {
  now(): number
  /** What it returns keeps `then` from being called. */
  after(ms: number, then: () => void): () => void
}

const ofProcess: Clock = {
  now: () => performance.now(),
  after(ms, then) {
    const timer = setTimeout(then, ms)
    return () => clearTimeout(timer)
  },
}

/** The queue of an event loop. Tenants take turns, but for those in a pause; so do the works of a tenant and its callers. */
export class Turns {
  readonly #clock: Clock
  /** In their order: a tenant that had its turn comes last. */
  readonly #waiting = new Map<string, Waiting>()
  readonly #pauses = new Pauses()
  #isPlanned = false
  #cancelTimer: (() => void) | undefined = undefined
  /** Whose step runs, and when it began. */
  #tenant: string | undefined = undefined
  #began = 0

  constructor(clock = ofProcess) {
    this.#clock = clock
  }

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
    })
  }

  /** Waits for a turn of the tenant; what follows at once is one step. */
  next(tenant: string): Promise<void> {
    return new Promise(resolve => {
      this.#of(tenant).callers.push(resolve)
    })
  }

  /** The same before a part of work; undefined where a step of the tenant has just begun: the part belongs to it. */
  nextPart(tenant: string): Promise<void> | undefined {
    const isNew = this.#tenant === tenant && this.#clock.now() - this.#began < SHORT_MS
    return isNew ? undefined : this.next(tenant)
  }

  #of(tenant: string): Waiting {
    let waiting = this.#waiting.get(tenant)
    if (!waiting) {
      waiting = { works: [], callers: [], worked: false }
      this.#waiting.set(tenant, waiting)
      this.#plan()
    }
    return waiting
  }

  /** The next turn: as soon as one of those that wait may take a step. */
  readonly #plan = (): void => {
    if (this.#isPlanned || this.#waiting.size === 0) return
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    const now = this.#clock.now()
    let at = Number.POSITIVE_INFINITY
    for (const tenant of this.#waiting.keys()) at = Math.min(at, this.#pauses.endOf(tenant, now))
    if (at > now) this.#cancelTimer = this.#clock.after(at - now, this.#plan)
    else {
      this.#isPlanned = true
      setImmediate(this.#turn)
      // Behind it in the same turn of the loop, when all has been done that goes on behind the step.
      setImmediate(this.#rest)
    }
  }

  readonly #turn = (): void => {
    this.#began = this.#clock.now()
    for (const [tenant, waiting] of this.#waiting) {
      if (this.#pauses.endOf(tenant, this.#began) > this.#began) continue
      this.#tenant = tenant
      this.#step(tenant, waiting)
      return
    }
  }

  readonly #rest = (): void => {
    if (this.#tenant !== undefined) this.#pauses.stepped(this.#tenant, this.#began, this.#clock.now())
    this.#tenant = undefined
    this.#isPlanned = false
    this.#plan()
  }

  #step(tenant: string, waiting: Waiting): void {
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
