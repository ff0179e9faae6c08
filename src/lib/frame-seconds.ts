/** The length of audio that is frames only. Decoders play what the frames hold, whatever the rest of the file says. */
import { type Frame, frameOf, HEAD } from './audio-frame.ts'
import type { ByteReader } from './byte-reader.ts'
import { HeadWindow, isId3, tagIn } from './frame-tags.ts'

/** How long frames are, and what proves their kind. */
export interface FramesLength {
  readonly seconds: number
  /** Bytes from the first one to the last head of as many frames as prove it; of all, where there are fewer. */
  readonly proven: number
}

/**
 * That of `size` bytes, the first of which begin a frame; undefined where they do not, where too few follow one another to
 * prove the kind of all that is behind them, and where frames of the first one's mark follow one another behind a gap: decoders
 * may have begun elsewhere. What is behind a gap, and beyond the steps of `budget`, counts as the slowest frames of the kind
 * would, with those that stand there alone: the result is no less than what is played.
 *
 * Tags between frames are no gap. Decoders that do not step over them play each frame in them, which counts; undefined where
 * such a frame, or a tag in a tag, leads them into the body of a frame behind it.
 */
export function framesLength(reader: ByteReader, size: number, budget: { steps: number }): FramesLength | undefined {
  return new FrameCount(reader, size, budget).length()
}

/** One pass over a file, from place to place at which a frame may begin. */
class FrameCount {
  readonly #reader: ByteReader
  readonly #size: number
  readonly #budget: { steps: number }
  readonly #window: HeadWindow
  /** Bytes that are shifted into the window before the next place. */
  #missing = HEAD
  #at = 0
  #first: Frame | undefined
  #samples = 0
  /** Those before a gap. */
  #frames = 0
  #proven = 0
  /** Seconds of frames in tags. */
  #inTags = 0
  /** Bytes that neither frames nor tags cover. */
  #uncovered: number
  #tagEnd = 0
  #isClosedTag = true
  #isGap = false
  readonly #endsBehindGap = new Set<number>()
  /** Decoders may differ on where frames begin. */
  #isAmbiguous = false

  constructor(reader: ByteReader, size: number, budget: { steps: number }) {
    this.#reader = reader
    this.#size = size
    this.#uncovered = size
    this.#budget = budget
    this.#window = new HeadWindow(reader)
  }

  length(): FramesLength | undefined {
    while (this.#budget.steps-- > 0 && this.#step());
    if (!this.#first || this.#isAmbiguous) return undefined
    const { rate, slowest, proof } = this.#first
    const isProven = this.#frames > proof
    if (this.#uncovered > 0 && !isProven) return undefined
    const seconds = this.#samples / rate + this.#inTags + Math.max(0, this.#uncovered) / slowest
    return { seconds, proven: isProven ? this.#proven : this.#size }
  }

  /** False at the end. */
  #step(): boolean {
    if (!this.#window.shift(this.#missing)) {
      // The last bytes of a tag at the end of the file.
      this.#uncovered -= Math.max(0, Math.min(this.#tagEnd - this.#at, HEAD))
      return false
    }
    if (this.#first && !this.#isGap && this.#at >= this.#tagEnd && !this.#openTag()) return false
    const frame = frameOf(this.#window.head, this.#window.rest)
    this.#first ??= frame
    if (!this.#first) return false
    if (this.#at < this.#tagEnd) return this.#withinTag(frame)
    if (frame?.mark !== this.#first.mark) return this.#openGap()
    this.#samples += frame.samples
    return this.#isGap ? this.#behindGap(frame) : this.#passFrame(frame)
  }

  /** False where the tag that begins here is longer than the file. */
  #openTag(): boolean {
    const tag = tagIn(this.#window)
    if (!tag) return true
    if (tag.bytes > 0) {
      this.#tagEnd = this.#at + tag.bytes
      if (this.#tagEnd > this.#size) return false
      this.#isClosedTag = tag.isClosed
      this.#uncovered -= tag.passed
    } else this.#isGap = true
    this.#at += tag.passed
    return true
  }

  #withinTag(frame: Frame | undefined): boolean {
    const left = this.#tagEnd - this.#at
    if ((frame && frame.bytes > left) || (!this.#isClosedTag && isId3(this.#window.head))) return this.#ambiguous()
    if (frame) this.#inTags += frame.samples / frame.rate
    let passed = 1
    if (this.#isClosedTag && left > HEAD && !this.#window.mayHoldFrame) {
      passed = HEAD + this.#reader.passTo(SYNC_BYTE, left - HEAD)
      this.#budget.steps -= STEPS_OF_SEARCH + (passed >>> BYTES_OF_STEP)
    }
    this.#uncovered -= passed
    return this.#goOn(passed, Math.min(passed, HEAD))
  }

  #passFrame({ bytes, proof }: Frame): boolean {
    if (this.#frames++ === proof) this.#proven = this.#at + HEAD
    this.#uncovered -= bytes
    return this.#reader.skip(bytes - HEAD) && this.#goOn(bytes, HEAD)
  }

  /** Each of these counts, and what it covers as well. */
  #behindGap({ bytes }: Frame): boolean {
    if (this.#endsBehindGap.has(this.#at)) return this.#ambiguous()
    this.#endsBehindGap.add(this.#at + bytes)
    return this.#goOn(1, 1)
  }

  #openGap(): boolean {
    this.#isGap = true
    return this.#goOn(1, 1)
  }

  #goOn(bytes: number, missing: number): boolean {
    this.#at += bytes
    this.#missing = missing
    return true
  }

  #ambiguous(): boolean {
    this.#isAmbiguous = true
    return false
  }
}

/** Of tags: a search takes as long as some frames, and as one more for each 64 bytes. */
const STEPS_OF_SEARCH = 6
const BYTES_OF_STEP = 6

/**
 * Whether frames of one mark follow one another from the first `within` bytes on: as many as prove it, or at least two to
 * the end of `bytes`.
 */
export function holdsFrames(bytes: Buffer, within: number): boolean {
  for (let at = bytes.indexOf(SYNC_BYTE); at >= 0 && at < within; at = bytes.indexOf(SYNC_BYTE, at + 1)) {
    if (isProven(bytes, at)) return true
  }
  return false
}

function isProven(bytes: Buffer, begin: number): boolean {
  const first = frameAt(bytes, begin)
  let frames = 0
  let at = begin
  for (let frame = first; frame && frame.mark === first?.mark; frame = frameAt(bytes, at)) {
    frames++
    at += frame.bytes
    if (frames === frame.proof) return true
  }
  return frames > 1 && at + HEAD > bytes.length
}

const frameAt = (bytes: Buffer, at: number): Frame | undefined =>
  at + HEAD <= bytes.length ? frameOf(bytes.readUInt32BE(at), bytes.readUIntBE(at + 4, HEAD - 4)) : undefined

const SYNC_BYTE = 0xff
