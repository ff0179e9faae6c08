/** HTTP chunks of an answer that hold next to nothing: each costs as much as one of hundreds of bytes. */
import type { Dispatcher } from 'undici'

/** Bytes of a chunk that count for it. One of a model holds an event of some dozens, or a token. */
const FULL = 16
/** What may be missing at once: of 4,369 chunks of one byte, or of 8,192 of eight. */
const BURST = 64 * 1024
/** And more each second, for a server that sends a blank again and again until it has something to say: 256 empty chunks. */
const PER_SECOND = 4096

/** Counts the chunks of one answer. Bytes of earlier chunks do not make up for later ones. */
export class SmallChunks {
  readonly #began: number
  #missing = 0

  /** On the monotonic clock, as `performance.now()`. */
  constructor(began = performance.now()) {
    this.#began = began
  }

  /** Counts a chunk of so many bytes; true once there are more small ones than any honest server sends. */
  add(bytes: number): boolean {
    const missing = this.#missing + FULL - bytes
    this.#missing = missing > 0 ? missing : 0
    if (missing <= BURST) return false
    return missing > BURST + ((performance.now() - this.#began) / 1000) * PER_SECOND
  }
}

/**
 * Fails answers where small chunks are more than any honest server sends. They are counted as they are parsed: who reads a
 * body gets all that is there in one piece.
 */
export const boundSmallChunks: Dispatcher.DispatcherComposeInterceptor = dispatch => (options, handler) =>
  dispatch(options, new ChunkBound(handler))

/** What takes an answer, with a bound on its chunks. */
class ChunkBound implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler
  readonly #small = new SmallChunks()

  constructor(handler: Dispatcher.DispatchHandler) {
    this.#handler = handler
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#handler.onRequestStart?.(controller, context)
  }

  onResponseStart(...given: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>): void {
    this.#handler.onResponseStart?.(...given)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#small.add(chunk.length)) controller.abort(new Error('it comes in chunks of a few bytes'))
    else this.#handler.onResponseData?.(controller, chunk)
  }

  onResponseEnd(...given: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseEnd']>>): void {
    this.#handler.onResponseEnd?.(...given)
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    this.#handler.onResponseError?.(controller, error)
  }
}
