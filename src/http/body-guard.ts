/** One request's body on its way in: the memory that it takes, and how fast it comes. */
import { errors, type GatewayError } from '../lib/error.ts'
import type { MemoryBudget, MemoryLease } from '../limits/memory.ts'
import { RateWindow } from '../limits/rate.ts'

/** Maximum bytes of a small body together with its parsed form. */
const SMALL_BODY_BYTES = 256 * 1024
/** Window over which the rate of a body is measured. */
const WINDOW_MS = 10_000

/** Bounds one request's body. An excess ends the reading with 529 for memory, and with 408 for time or rate. */
export class BodyGuard {
  readonly #budget: MemoryBudget
  readonly #tenant: () => string
  #lease: MemoryLease | undefined
  /** Number of copies kept while a request is answered: the parsed body, and the body for the provider. */
  copies = 2
  #since = 0
  #rate: RateWindow | undefined
  #fail: ((error: GatewayError) => void) | undefined

  /** `tenant` names whose share the body takes; it is read when the body is. */
  constructor(budget: MemoryBudget, tenant: () => string) {
    this.#budget = budget
    this.#tenant = tenant
  }

  /** Organization whose share the body takes. */
  get tenant(): string {
    return this.#tenant()
  }

  /** Throws 529 when a body of the length that the client declares has no room now. Takes none yet. */
  expect(declared: number): void {
    const tenant = this.#tenant()
    if (!this.#budget.fits(tenant, declared * this.copies)) throw errors.overloaded()
    this.#lease = this.#budget.lease(tenant, declared * this.copies)
  }

  /** Reading begins; `fail` ends it. `now` is in milliseconds, as it is for `check`. */
  begin(now: number, fail: (error: GatewayError) => void): void {
    this.#since = now
    this.#rate = new RateWindow(WINDOW_MS, now)
    this.#fail = fail
  }

  /** Acquires memory for received bytes until `release`. Throws 529 when the budget is exhausted. */
  got(bytes: number): void {
    this.#rate?.moved(bytes)
    this.take(bytes * this.copies)
  }

  /** Acquires memory for what is made of the body, until `release`. Throws 529 when the budget is exhausted. */
  take(bytes: number): void {
    if (!this.holds(bytes)) throw errors.overloaded()
  }

  /** Takes memory for the parsed form, besides the text. A body of 64 KiB stays within the reserve with it. */
  parse(bytes: number): void {
    if (!this.#grow(bytes, SMALL_BODY_BYTES)) throw errors.overloaded()
  }

  /** Takes memory for bytes that have already arrived. Returns false, and takes nothing, when there is none. */
  holds(bytes: number): boolean {
    return this.#grow(bytes)
  }

  /** Acquires memory until the caller calls what this returns. Throws 529 when the budget is exhausted. */
  borrow(bytes: number): () => void {
    const lease = this.#budget.lease(this.#tenant())
    if (!lease.grow(bytes)) throw errors.overloaded()
    return () => lease.release()
  }

  #grow(bytes: number, reserved?: number): boolean {
    this.#lease ??= this.#budget.lease(this.#tenant())
    return this.#lease.grow(bytes, reserved)
  }

  end(): void {
    this.#fail = undefined
  }

  /** True while a body is being read. */
  get reading(): boolean {
    return this.#fail !== undefined
  }

  /** Ends the reading with an error; without effect when nothing is read. */
  abort(error: GatewayError): void {
    const fail = this.#fail
    this.#fail = undefined
    fail?.(error)
  }

  /** Ends the reading of a body that has taken longer than `limitMs`, or comes with fewer than `minRate` bytes a second. */
  check(now: number, limitMs: number, minRate: number): void {
    if (!this.#fail) return
    if (this.#rate?.isSlow(now, minRate) || now - this.#since > limitMs) this.abort(errors.requestTimeout())
  }

  /** The exchange is over: nothing of the body is kept any more. */
  release(): void {
    this.#lease?.release()
  }
}
