/** Puts small chunks of bytes together: a body that comes byte by byte would take 300 times its size until it is whole. */

/** Bytes from which a chunk stays as it is. */
const LARGE = 4096
/** So many small ones stay as they are too: most bodies come in fewer. */
const FEW = 16
const BLOCK = 16 * 1024

/** Passes on what comes, in order, in pieces that are few for their size. */
export class ChunkCoalescer {
  readonly #pass: (piece: Buffer) => void
  #small = 0
  /** What small chunks are copied to: from `#from` to `#to` they were not passed on yet. */
  #block: Buffer | undefined
  #from = 0
  #to = 0

  constructor(pass: (piece: Buffer) => void) {
    this.#pass = pass
  }

  add(chunk: Buffer): void {
    const isLarge = chunk.length >= LARGE
    if (isLarge || this.#small < FEW) {
      if (!isLarge) this.#small++
      this.pass()
      this.#pass(chunk)
      return
    }
    if (this.#block === undefined || chunk.length > BLOCK - this.#to) {
      this.pass()
      this.#block = Buffer.allocUnsafeSlow(BLOCK)
      this.#from = this.#to = 0
    }
    this.#to += chunk.copy(this.#block, this.#to)
  }

  /** Passes on what is kept; what comes from then on counts anew. */
  flush(): void {
    this.pass()
    this.#small = 0
  }

  /** Passes on what is kept. */
  pass(): void {
    if (this.#block === undefined || this.#to === this.#from) return
    this.#pass(this.#block.subarray(this.#from, this.#to))
    this.#from = this.#to
  }
}

/** The same in a list. */
export class CoalescedChunks {
  #pieces: Buffer[] = []
  #bytes = 0
  readonly #coalescer = new ChunkCoalescer(piece => void this.#pieces.push(piece))

  /** Of all that came since the last `take`. */
  get bytes(): number {
    return this.#bytes
  }

  add(chunk: Buffer): void {
    this.#bytes += chunk.length
    this.#coalescer.add(chunk)
  }

  /** All that came since the last call. */
  take(): Buffer[] {
    this.#coalescer.flush()
    const pieces = this.#pieces
    this.#pieces = []
    this.#bytes = 0
    return pieces
  }

  /** The same in one piece. */
  joined(): Buffer {
    const pieces = this.take()
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  }
}
