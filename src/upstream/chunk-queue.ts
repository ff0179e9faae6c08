/** The chunks of one answer between its socket and its reader. */
import type { GatewayError } from '../lib/error.ts'

/** How much a reader took at a time. */
export interface Taken {
  readonly pieces: number
  readonly bytes: number
}

/**
 * A queue with one reader. It ends once, or fails once; what came before is given first. One read of a socket brings
 * many chunks, one by one: a reader that waits for the first of them gets them all.
 */
export class ChunkQueue {
  readonly #onTaken: (taken: Taken) => void
  #chunks: Buffer[] = []
  #bytes = 0
  /** Wakes the waiting reader, which then reads the queue. */
  #waiting: (() => void) | undefined
  #ended = false
  #error: GatewayError | undefined

  /** `onTaken` is called whenever all that was in the queue is taken. */
  constructor(onTaken: (taken: Taken) => void) {
    this.#onTaken = onTaken
  }

  /** Bytes that wait to be taken. */
  get bytes(): number {
    return this.#bytes
  }

  /** All chunks that have arrived since the last call, waiting for at least one; undefined at the end. */
  take(): Promise<Buffer[] | undefined> {
    if (this.#chunks.length > 0) return Promise.resolve(this.#taken())
    if (this.#error) return Promise.reject(this.#error)
    if (this.#ended) return Promise.resolve(undefined)
    return new Promise<void>(resolve => {
      this.#waiting = resolve
    }).then(this.#given)
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
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

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.()
  }

  readonly #given = (): Buffer[] | undefined => {
    if (this.#chunks.length > 0) return this.#taken()
    if (this.#error) throw this.#error
    return undefined
  }

  #taken(): Buffer[] {
    const chunks = this.#chunks
    const taken = { pieces: chunks.length, bytes: this.#bytes }
    this.#chunks = []
    this.#bytes = 0
    this.#onTaken(taken)
    return chunks
  }
}
