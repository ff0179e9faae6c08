/** The chunks of one answer between its socket and its reader. */
import type { GatewayError } from '../core/error.ts'

/**
 * A reader that asks for pieces as they come is woken no more often than this: whatever follows sooner goes through
 * decoding, encoding and the client's socket together. Nobody reads faster, and providers seldom speak faster.
 */
const GATHER_MS = 4

interface Waiting {
  resolve(chunks: Buffer[] | undefined): void
  reject(error: GatewayError): void
}

/** A queue with one reader. It ends once, or fails once; what came before is given first. */
export class Arrivals {
  readonly #onTaken: () => void
  readonly #later: (call: () => void, ms: number) => void
  #chunks: Buffer[] = []
  #bytes = 0
  #waiting: Waiting | undefined
  #ended = false
  #error: GatewayError | undefined
  #gathers = false
  /** When the reader may be woken again, on the monotonic clock. */
  #notBefore = 0
  /** Waits for that moment. */
  #waits = false

  /** `onTaken` is called whenever nothing is left in the queue. */
  constructor(onTaken: () => void, later: (call: () => void, ms: number) => void = setTimeout) {
    this.#onTaken = onTaken
    this.#later = later
  }

  /** Of what waits to be taken. */
  get bytes(): number {
    return this.#bytes
  }

  /** From now on what comes in quick succession is given together. */
  gather(): void {
    this.#gathers = true
  }

  /** All chunks that have arrived since the last call, waiting for at least one; undefined at the end. */
  take(): Promise<Buffer[] | undefined> {
    if (this.#chunks.length > 0) return Promise.resolve(this.#taken())
    if (this.#error) return Promise.reject(this.#error)
    if (this.#ended) return Promise.resolve(undefined)
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  /** `now` is on the monotonic clock; one that is `urgent` waits for no other. */
  push(chunk: Buffer, now: number, urgent: boolean): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (!this.#waiting) return
    if (this.#gathers && now < this.#notBefore && !urgent) {
      if (!this.#waits) this.#later(this.#onTime, this.#notBefore - now)
      this.#waits = true
      return
    }
    this.#notBefore = now + GATHER_MS
    this.#wake()
  }

  end(): void {
    this.#ended = true
    this.#wake()
  }

  fail(error: GatewayError): void {
    this.#error = error
    this.#wake()
  }

  readonly #onTime = (): void => {
    this.#waits = false
    if (this.#chunks.length === 0) return
    this.#notBefore += GATHER_MS
    this.#wake()
  }

  #wake(): void {
    const waiting = this.#waiting
    if (!waiting) return
    this.#waiting = undefined
    if (this.#chunks.length > 0) waiting.resolve(this.#taken())
    else if (this.#error) waiting.reject(this.#error)
    else waiting.resolve(undefined)
  }

  #taken(): Buffer[] {
    const chunks = this.#chunks
    this.#chunks = []
    this.#bytes = 0
    this.#onTaken()
    return chunks
  }
}
