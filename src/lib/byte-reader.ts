/** Reads bytes one after another from the pieces that they came in. */
export class ByteReader {
  readonly #pieces: Iterator<Buffer>
  #piece: Buffer = EMPTY
  #at = 0

  constructor(pieces: Iterable<Buffer>) {
    this.#pieces = pieces[Symbol.iterator]()
  }

  /** The next byte; -1 at the end. */
  byte(): number {
    return this.#at < this.#piece.length || this.#advance() ? this.#piece[this.#at++]! : -1
  }

  /** The next `count` bytes, or fewer at the end: a view of their piece, or put together where they are of several. */
  take(count: number): Buffer {
    const within = this.#within(count)
    if (within.length === count) return within
    const parts = [within]
    for (let left = count - within.length; left > 0 && this.#advance(); left -= parts.at(-1)!.length) {
      parts.push(this.#within(left))
    }
    return Buffer.concat(parts)
  }

  /** Passes over the next `count` bytes; false where there are fewer. */
  skip(count: number): boolean {
    if (this.#at + count <= this.#piece.length) {
      this.#at += count
      return true
    }
    let left = count - this.#within(count).length
    while (left > 0 && this.#advance()) left -= this.#within(left).length
    return left === 0
  }

  /** Passes over bytes before the next one that is `byte`, at most `most`; returns how many. */
  passTo(byte: number, most: number): number {
    let passed = 0
    while (passed < most && (this.#at < this.#piece.length || this.#advance())) {
      const within = this.#within(most - passed)
      const found = within.indexOf(byte)
      if (found < 0) passed += within.length
      else {
        this.#at -= within.length - found
        return passed + found
      }
    }
    return passed
  }

  #within(count: number): Buffer {
    const from = this.#at
    this.#at = Math.min(from + count, this.#piece.length)
    return this.#piece.subarray(from, this.#at)
  }

  /** To the next piece with a byte. */
  #advance(): boolean {
    for (let next = this.#pieces.next(); !next.done; next = this.#pieces.next()) {
      this.#piece = next.value
      this.#at = 0
      if (this.#piece.length > 0) return true
    }
    return false
  }
}

const EMPTY = Buffer.alloc(0)
