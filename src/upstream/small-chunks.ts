/** HTTP chunks of an answer that hold next to nothing: each costs as much as one of hundreds of bytes. */

/** Bytes of a chunk that count for it. One of a model holds an event of some dozens, or a token. */
const FULL = 16
/** What may be missing at once: of 4,369 chunks of one byte, or of 8,192 of eight. */
const BURST = 64 * 1024
/** And more each second, for a server that sends a blank again and again until it has something to say: 256 empty chunks. */
const PER_SECOND = 4096

/** The chunks of a fetched body. Throws where small ones are more than any honest server sends. */
export async function* chunksIn(body: AsyncIterable<unknown>): AsyncGenerator<Buffer> {
  const small = new SmallChunks()
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (small.add(chunk.length)) throw new Error('it comes in chunks of a few bytes')
    yield chunk
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
