/** A budget of time for each turn of the event loop: small pieces may together keep it for long. */

/** Work of one turn, in milliseconds, beyond which pieces wait for later turns. */
const FULL_MS = 20
/** Of those that have waited, in one turn; one of them may take longer. */
const WAITED_MS = 10
/** Of those, at most: the turn is planned before it is known how long each takes. */
const MOST = 128

/** That of an event loop, and who waits for later turns; tenants take turns. */
export class TurnBudget {
  readonly #now: () => number
  /** When the first piece of this turn came; 0 before it. */
  #began = 0
  readonly #waiting = new Map<string, (() => void)[]>()
  #count = 0
  #running = false
  #servedFrom = 0

  /** `now` is a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Undefined where this turn has room; else resolves in a later one. */
  next(tenant: string): Promise<void> | undefined {
    const now = this.#now()
    if (this.#began === 0) {
      this.#began = now
      setImmediate(this.#newTurn)
    }
    return now - this.#began < FULL_MS ? undefined : this.#wait(tenant)
  }

  readonly #newTurn = (): void => {
    this.#began = 0
  }

  #wait(tenant: string): Promise<void> {
    return new Promise(resolve => {
      const waiting = this.#waiting.get(tenant)
      if (waiting) waiting.push(resolve)
      else this.#waiting.set(tenant, [resolve])
      this.#count++
      if (!this.#running) this.#schedule()
    })
  }

  /** What goes on behind each has been done when the next one is served: microtasks run in between. */
  #schedule(): void {
    this.#running = true
    this.#servedFrom = 0
    for (let served = Math.min(this.#count, MOST); served > 0; served--) setImmediate(this.#serve)
    setImmediate(this.#rest)
  }

  readonly #serve = (): void => {
    const now = this.#now()
    this.#servedFrom ||= now
    const [first] = this.#waiting
    if (!first || now - this.#servedFrom >= WAITED_MS) return
    const [tenant, waiting] = first
    this.#waiting.delete(tenant)
    this.#count--
    waiting.shift()!()
    if (waiting.length > 0) this.#waiting.set(tenant, waiting)
  }

  readonly #rest = (): void => {
    this.#running = false
    if (this.#count > 0) this.#schedule()
  }
}

/** Of this thread. */
export const turnBudget = new TurnBudget()
