/** Tags that stand between frames of audio, where files were joined: ID3v2, ID3v1 and APEv2. */
import type { ByteReader } from './byte-reader.ts'

/** The bytes of a file at which a head may begin: four, and the three behind them. */
export class HeadWindow {
  head = 0
  rest = 0
  readonly #reader: ByteReader

  constructor(reader: ByteReader) {
    this.#reader = reader
  }

  /** Goes on by `count` bytes; false at the end of the file. */
  shift(count: number): boolean {
    for (let missing = count; missing > 0; missing--) {
      const byte = this.#reader.byte()
      if (byte < 0) return false
      this.head = ((this.head << 8) | (this.rest >>> 16)) >>> 0
      this.rest = ((this.rest << 8) | byte) & 0xff_ffff
    }
    return true
  }

  /** Whether one of its bytes may be the first one of a frame. */
  get mayHoldFrame(): boolean {
    return holdsFull(this.head) || holdsFull(this.rest)
  }
}

/** Whether one of four bytes is 255. */
const holdsFull = (word: number): boolean => ((~word - 0x0101_0101) & word & 0x8080_8080) !== 0

export interface FrameTag {
  /** Bytes of its begin that are shifted out of the window; none of them begins a frame. */
  readonly passed: number
  /** Of all of it; 0 for what begins like a tag and is none. */
  readonly bytes: number
  /** Whether tags within it are none to any decoder. */
  readonly isClosed: boolean
}

/** The tag that begins in `window`, which is shifted into it; undefined where none does. */
export function tagIn(window: HeadWindow): FrameTag | undefined {
  if (isId3(window.head)) return id3Tag(window)
  if (window.head >>> 8 === TAG) return { passed: Number(window.shift(1)), bytes: TAG_BYTES, isClosed: false }
  return window.head === APET && window.rest === AGE ? apeTag(window) : undefined
}

/** Whether ID3v2 may begin with these four bytes. */
export const isId3 = (head: number): boolean => head >>> 8 === ID3

const ID3 = 0x49_4433
const TAG = 0x54_4147
const TAG_BYTES = 128
const APET = 0x4150_4554
const AGE = 0x41_4745

const ID3_HEAD = 10
const FOOTER = 0x10

function id3Tag(window: HeadWindow): FrameTag {
  const isWhole = window.shift(3)
  const size = ((window.head << 24) | window.rest) >>> 0
  const bytes = isWhole ? id3Bytes(window.head >>> 16, window.head >>> 8, size) : undefined
  return { passed: 3, bytes: bytes ?? 0, isClosed: true }
}

/**
 * Bytes of a tag of ID3v2 (ID3v2.4 section 3.1) by the fields of its head. Undefined where decoders take it for audio: the
 * version is no 255, and the bytes of the size have seven bits.
 */
export function id3Bytes(version: number, flags: number, size: number): number | undefined {
  const isTag = version >>> 8 !== 0xff && (version & 0xff) !== 0xff && (size & 0x8080_8080) === 0
  if (!isTag) return undefined
  const [low, mid, high, highest] = [0, 8, 16, 24].map(bits => (size >>> bits) & 0x7f) as [
    number,
    number,
    number,
    number,
  ]
  const length = (highest << 21) | (high << 14) | (mid << 7) | low
  return ID3_HEAD + length + (flags & FOOTER ? ID3_HEAD : 0)
}

const APE_HEAD = 32
/** 2,000, the lowest byte first. */
const APE_VERSION = 0xd007_0000

/** With its head first: the name, the version, and the size of what follows the head. */
function apeTag(window: HeadWindow): FrameTag {
  const none = { bytes: 0, isClosed: false }
  if (!window.shift(1) || (window.rest & 0xff) !== 0x58) return { passed: 1, ...none }
  if (!window.shift(7) || window.head !== APE_VERSION) return { passed: 8, ...none }
  const low = window.rest
  if (!window.shift(1)) return { passed: 9, ...none }
  const size = (low >>> 16) + (low & 0xff00) + (low & 0xff) * 0x1_0000 + (window.rest & 0xff) * 0x100_0000
  return { passed: 9, bytes: APE_HEAD + size, isClosed: false }
}
