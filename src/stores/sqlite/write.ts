/** One write that waits for its transaction. */

/** How long a write waits for the lock of another process. */
export const PATIENCE_MS = 500

/** What a transaction runs, and tells how it ended. */
export interface WriteJob {
  run(): void
  done(): void
  fail(error: unknown): void
  /** When to give up waiting for another process, on the monotonic clock. */
  readonly until: number
  readonly safety: Durability
}

/** When a write counts as done: once the process, or once the machine, may end without losing it. */
export type Durability = 'committed' | 'durable'

/** Something to write, and the promise of whoever asked for it. */
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
    this.until = performance.now() + PATIENCE_MS
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

/** Makes an error of the store one that a caller understands. */
export type Explain = (cause: unknown) => Error
