/** Joins chunks of bytes as they come: many small ones take no more memory than their bytes, twice at most. */

const EMPTY = Buffer.alloc(0)
const MIN_BUFFER_BYTES = 4096

export class ByteBuffer {
  /** The first chunk as it came, or a copy of all chunks with room behind them. */
  #bytes: Buffer = EMPTY
  #size = 0
  #isCopy = false

  /** Bytes added since the last `take`. */
  get size(): number {
    return this.#size
  }

  add(chunk: Buffer): void {
    const size = this.#size + chunk.length
    if (this.#size === 0) {
      this.#bytes = chunk
      this.#isCopy = false
    } else {
      if (!this.#isCopy || size > this.#bytes.length) {
        const larger = Buffer.allocUnsafe(Math.max(size, 2 * this.#size, MIN_BUFFER_BYTES))
        this.#bytes.copy(larger, 0, 0, this.#size)
        this.#bytes = larger
        this.#isCopy = true
      }
      chunk.copy(this.#bytes, this.#size)
    }
    this.#size = size
  }

  /** All bytes since the last call, in one piece. */
  take(): Buffer {
    const bytes = this.#bytes.subarray(0, this.#size)
    this.#bytes = EMPTY
    this.#size = 0
    this.#isCopy = false
    return bytes
  }
}
