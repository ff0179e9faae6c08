/** The length of audio that comes in pieces, none of which is kept. */
import { frameOf, HEAD } from './audio-frame.ts'

/** Bytes of a second by media type, for what is in no frame and no page; of samples, 16 bits at 24,000 a second. */
const RATES: readonly (readonly [type: RegExp, bytesPerSecond: number])[] = [
  [/wav|pcm|l16/i, 48_000],
  [/flac/i, 24_000],
  [/opus|ogg/i, 4_000],
  [/aac/i, 8_000],
]
/** Of MP3, and of what is not known. */
const USUAL_RATE = 16_000
const PLAIN = /wav|pcm|l16|flac/i
const OGG = /opus|ogg/i

/** Of a page in Ogg (RFC 3533 section 6), before its list of segments. */
const PAGE_HEAD = 27
/** `OggS`. */
const PAGE = Buffer.from([0x4f, 0x67, 0x67, 0x53])
/** Positions of Opus are in samples at this rate, whatever it was made of (RFC 7845 section 4). */
const OPUS_RATE = 48_000
/** Seconds of a packet of Opus, at most. */
const LONGEST_PACKET = 0.12
const SYNC_BYTE = 0xff
const EMPTY = Buffer.alloc(0)

/**
 * Counts MP3 and AAC by their frames, and Opus in Ogg by the positions of its pages; other formats, and bytes between frames
 * or pages, by a usual number of bytes for each second. Keeps the beginning of a head alone.
 */
export class StreamedSeconds {
  readonly #bytesPerSecond: number
  readonly #isPlain: boolean
  readonly #isOgg: boolean
  /** Of frames and pages. */
  #counted = 0
  /** Bytes that are in none. */
  #uncovered = 0
  /** Bytes of the last frame or page that have not come. */
  #missing = 0
  /** A head that has not come whole. */
  #head: Buffer = EMPTY
  #serial: number | undefined
  #position = 0

  constructor(contentType: string) {
    this.#bytesPerSecond = RATES.find(([type]) => type.test(contentType))?.[1] ?? USUAL_RATE
    this.#isPlain = PLAIN.test(contentType)
    this.#isOgg = OGG.test(contentType)
  }

  get seconds(): number {
    return this.#counted + this.#uncovered / this.#bytesPerSecond
  }

  add(piece: Buffer): void {
    if (this.#isPlain) {
      this.#uncovered += piece.length
      return
    }
    const bytes = this.#head.length > 0 ? Buffer.concat([this.#head, piece]) : piece
    let at = this.#missing
    while (at < bytes.length) {
      const passed = this.#isOgg ? this.#passPage(bytes, at) : this.#passFrame(bytes, at)
      if (passed === 0) break
      at += passed
    }
    this.#missing = Math.max(0, at - bytes.length)
    this.#head = at < bytes.length ? Buffer.from(bytes.subarray(at)) : EMPTY
  }

  /** How many bytes the frame has that begins at a place, or what is none before the next one; 0 before a head is whole. */
  #passFrame(bytes: Buffer, at: number): number {
    if (at + HEAD > bytes.length) return 0
    const frame = frameOf(bytes.readUInt32BE(at), bytes.readUIntBE(at + 4, HEAD - 4))
    if (!frame) return this.#passOther(at, bytes.indexOf(SYNC_BYTE, at + 1), bytes.length)
    this.#counted += frame.samples / frame.rate
    return frame.bytes
  }

  /** The same of a page. */
  #passPage(bytes: Buffer, at: number): number {
    if (at + PAGE_HEAD > bytes.length) return 0
    if (bytes.compare(PAGE, 0, PAGE.length, at, at + PAGE.length) !== 0) {
      return this.#passOther(at, bytes.indexOf(PAGE, at + 1), bytes.length - PAGE.length + 1)
    }
    const segments = bytes[at + PAGE_HEAD - 1]!
    const end = at + PAGE_HEAD + segments
    if (end > bytes.length) return 0
    let size = PAGE_HEAD + segments
    for (let of = at + PAGE_HEAD; of < end; of++) size += bytes[of]!
    this.#countPage(bytes, at, segments)
    return size
  }

  /** Of a page in which no packet ends the position is -1. */
  #countPage(bytes: Buffer, at: number, segments: number): void {
    const position = bytes.readInt32LE(at + 10) * 2 ** 32 + bytes.readUInt32LE(at + 6)
    const serial = bytes.readUInt32LE(at + 14)
    if (serial !== this.#serial) this.#position = 0
    this.#serial = serial
    if (position < 0) return
    const seconds = Math.max(0, position - this.#position) / OPUS_RATE
    this.#counted += Math.min(seconds, segments * LONGEST_PACKET)
    this.#position = position
  }

  /** `next`: where another frame or page may begin; negative where none does before `end`. */
  #passOther(at: number, next: number, end: number): number {
    const passed = (next < 0 ? end : next) - at
    this.#uncovered += passed
    return passed
  }
}
