/** One write that waits for its transaction. */

/** How long a write waits for the lock of another process. */
export const LOCK_TIMEOUT_MS = 500

/** Work of a transaction, with a callback for its result. */
export interface WriteJob {
  run(): void
  done(): void
  fail(error: unknown): void
  /** When to stop waiting for another process, on the monotonic clock. */
  readonly until: number
  readonly safety: Durability
}

/** When a write is done: when it survives the process, or the machine. */
export type Durability = 'committed' | 'durable'

/** A pending write and the promise of its caller. */
export class Write<T> implements WriteJob {
  readonly #work: () => T
  readonly #explain: Explain | undefined
  readonly #resolve: (result: T) => void
  readonly #reject: (reason: unknown) => void
  readonly until: number
  readonly safety: Durability
  #result: T | undefined

  constructor(
    work: () => T,
    safety: Durability,
    explain: Explain | undefined,
    resolve: (result: T) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#work = work
    this.safety = safety
    this.#explain = explain
    this.#resolve = resolve
    this.#reject = reject
    this.until = performance.now() + LOCK_TIMEOUT_MS
  }

  run(): void {
    this.#result = this.#work()
  }

  done(): void {
    this.#resolve(this.#result as T)
  }

  fail(error: unknown): void {
    this.#reject(this.#explain ? this.#explain(error) : error)
  }
}

/** Turns an error of the store into one for its caller. */
export type Explain = (cause: unknown) => Error
