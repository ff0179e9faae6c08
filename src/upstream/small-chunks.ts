/** HTTP chunks of an answer that hold next to nothing: each costs as much as one of hundreds of bytes. */
import type { Readable } from 'node:stream'

/** Bytes of a chunk that count for it. One of a model holds an event of some dozens, or a token. */
const FULL = 16
/** What may be missing at once: of 4,369 chunks of one byte, or of 8,192 of eight. */
const BURST = 64 * 1024
/** And more each second, for a server that sends a blank again and again until it has something to say: 256 empty chunks. */
const PER_SECOND = 4096

/** Ends a body that undici gives once small chunks are more than any honest server sends. Its reader gets several as one. */
export function boundSmallChunks(body: Readable): void {
  const small = new SmallChunks()
  const push = body.push.bind(body)
  body.push = (chunk: Buffer | null, ...rest) => {
    if (chunk && small.add(chunk.length)) body.destroy(new Error('it comes in chunks of a few bytes'))
    return push(chunk, ...rest)
  }
}

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
