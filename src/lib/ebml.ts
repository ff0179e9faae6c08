/** Elements of EBML (RFC 8794), of which WebM and Matroska are made. */
import { ByteReader } from './byte-reader.ts'

/** The size of an element that ends with what cannot be in it. */
export const UNKNOWN = -1

/** One element after another, into which its reader goes or which it skips. */
export class Elements {
  id = 0
  /** Bytes of its data; UNKNOWN where it ends with what cannot be in it. */
  size = 0
  /** Where its data begin. */
  at = 0
  /** What stood here was no element. */
  isBroken = false
  readonly #reader: ByteReader

  constructor(reader: ByteReader) {
    this.#reader = reader
  }

  /** False at the end, and where there is no element. */
  next(): boolean {
    const first = this.#reader.byte()
    if (first < 0) return false
    const idBytes = Math.clz32(first) - 23
    const id = this.#number(first, idBytes)
    const second = this.#reader.byte()
    const sizeBytes = Math.clz32(second) - 23
    // Cut within an element: nothing of it is played.
    if (id < 0 || second < 0) return false
    this.isBroken = idBytes > 4 || sizeBytes > 8
    if (this.isBroken) return false
    const most = 2 ** (7 * sizeBytes) - 1
    const size = this.#number(second - 2 ** (8 - sizeBytes), sizeBytes)
    if (size < 0) return false
    this.id = id
    this.size = size === most ? UNKNOWN : size
    this.at += idBytes + sizeBytes
    return true
  }

  /** The first bytes of the data, all of it by default; the rest is passed over. */
  take(most = this.size): Buffer {
    const bytes = this.#reader.take(Math.min(most, this.size))
    this.#reader.skip(this.size - bytes.length)
    this.at += this.size
    return bytes
  }

  /** Big-endian; -1 at the end. */
  #number(first: number, bytes: number): number {
    let value = first
    for (let read = 1; read < bytes; read++) {
      const byte = this.#reader.byte()
      if (byte < 0) return -1
      value = value * 256 + byte
    }
    return value
  }
}

/** Those of a master. */
export const within = (bytes: Buffer): Elements => new Elements(new ByteReader([bytes]))

export const numberIn = (bytes: Buffer): number => bytes.reduce((value, byte) => value * 256 + byte, 0)
