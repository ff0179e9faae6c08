/** One write that waits for its transaction. */
import type { Durability } from '../sql/sql.ts'

export type { Durability } from '../sql/sql.ts'

/** How long a write waits for the lock of another process. */
export const LOCK_TIMEOUT_MS = 500

/** Work of a transaction, with a callback for its result. */
export interface WriteJob {
  /** A promise only where the work returns one. */
  run(): void | Promise<void>
  done(): void
  fail(error: unknown): void
  /** When to stop waiting for another process, on the monotonic clock. */
  readonly until: number
  readonly safety: Durability
}

/** A pending write and the promise of its caller. */
export class Write<T> implements WriteJob {
  readonly #work: () => T | Promise<T>
  readonly #explain: Explain | undefined
  readonly #resolve: (result: T) => void
  readonly #reject: (reason: unknown) => void
  readonly until: number
  readonly safety: Durability
  #result: T | undefined

  constructor(
    work: () => T | Promise<T>,
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

  run(): void | Promise<void> {
    const result = this.#work()
    if (result instanceof Promise) return this.#await(result)
    this.#result = result
  }

  done(): void {
    this.#resolve(this.#result as T)
  }

  fail(error: unknown): void {
    this.#reject(this.#explain ? this.#explain(error) : error)
  }

  async #await(result: Promise<T>): Promise<void> {
    this.#result = await result
  }
}

/** Turns an error of the store into one for its caller. */
export type Explain = (cause: unknown) => Error
