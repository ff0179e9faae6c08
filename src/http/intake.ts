/** One request's body on its way in: the room that it takes, and how fast it comes. */
import { errors, type GatewayError } from '../core/error.ts'
import type { Room } from '../core/ports.ts'

/** A body may be slow at first; then it must come at this rate (reliability section C). */
const PATIENCE_MS = 10_000
const MIN_BYTES_PER_MS = 1024 / 1000
/** What is kept of a body while it is answered: its parsed form, and what was sent to the provider. */
const COPIES = 2

export class Intake {
  readonly #room: Room
  #taken = 0
  #received = 0
  #since = 0
  #fail: ((error: GatewayError) => void) | undefined

  constructor(room: Room) {
    this.#room = room
  }

  /** Takes room for so many bytes of body, until `release`. Throws 529 when there is none. */
  take(bytes: number): void {
    const kept = bytes * COPIES
    if (!this.#room.take(kept)) throw errors.overloaded()
    this.#taken += kept
  }

  /** Reading begins; `fail` ends it. `now` is in milliseconds, as it is for `check`. */
  begin(now: number, fail: (error: GatewayError) => void): void {
    this.#since = now
    this.#fail = fail
  }

  /** A piece of so many bytes came. */
  got(bytes: number): void {
    this.#received += bytes
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

  /** Ends the reading of a body that has taken longer than `limitMs`, or comes too slowly. */
  check(now: number, limitMs: number): void {
    if (!this.#fail) return
    const ms = now - this.#since
    if (ms > limitMs || (ms > PATIENCE_MS && this.#received < ms * MIN_BYTES_PER_MS))
      this.abort(errors.requestTimeout())
  }

  /** The exchange is over: nothing of the body is kept any more. */
  release(): void {
    this.#room.give(this.#taken)
    this.#taken = 0
  }
}
