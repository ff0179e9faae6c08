/** The length of FLAC (RFC 9639). */

export interface FlacLength {
  readonly seconds: number
  /** By its frames, of which it is no less; else decoders may find something else, or its head alone says it. */
  readonly counted: boolean
}

/** Bytes that are read of the mark of the file and its first block, STREAMINFO (section 8.2). */
const INFO = 26
/** Bytes of STREAMINFO behind the head of its block. */
const INFO_BYTES = 34
const LEAST_BLOCK = 16
/** Samples a second, above which decoders doubt that a file is FLAC. */
const MOST_RATE = 655_350

/**
 * Of the bytes behind `start`, which begin as `head`: of all frames in them, or what the head says where that is more.
 * Undefined where neither says a length, and beyond the steps of `budget`.
 */
export function flacLength(
  head: Buffer,
  pieces: Iterable<Buffer>,
  start: number,
  budget: { steps: number },
): FlacLength | undefined {
  if (head.length < INFO) return undefined
  // 20 bits of the rate, and 36 of the count of samples.
  const rate = head.readUIntBE(18, 3) >> 4
  if (rate === 0) return undefined
  const said = ((head[21]! & 0x0f) * 2 ** 32 + head.readUInt32BE(22)) / rate
  const played = new FrameSearch(rate, budget).secondsIn(pieces, start)
  const seconds = Math.max(said, played ?? 0)
  return played === undefined || seconds === 0 ? undefined : { seconds, counted: played > 0 && isPlain(head, rate) }
}

/** Whether decoders take it for FLAC whatever else is in it. */
function isPlain(head: Buffer, rate: number): boolean {
  const least = head.readUInt16BE(8)
  return (
    (head[4]! & 0x7f) === 0 &&
    head.readUIntBE(5, 3) === INFO_BYTES &&
    least >= LEAST_BLOCK &&
    head.readUInt16BE(10) >= least &&
    rate <= MOST_RATE
  )
}

/** Steps of a piece, of a byte, and of one at which a frame may begin. */
const STEPS = { piece: 1, byte: 1 / 1024, begin: 1 / 4 }
/** Bytes of the longest head of a frame. */
const FRAME_HEAD = 16
const SYNC = 0xff
const EMPTY = Buffer.alloc(0)
const END = Buffer.alloc(FRAME_HEAD - 1)

/**
 * Frames do not say where they end: whatever has the head of one, and its check, counts, so that none is missed. One in some
 * 30 MB does by accident.
 */
class FrameSearch {
  readonly #rate: number
  readonly #budget: { steps: number }
  /** Of frames at the rate of the file, and seconds of others. */
  #samples = 0
  #seconds = 0

  constructor(rate: number, budget: { steps: number }) {
    this.#rate = rate
    this.#budget = budget
  }

  /** Of all frames behind the first `start` bytes; 0 for none, undefined beyond the budget. */
  secondsIn(pieces: Iterable<Buffer>, start: number): number | undefined {
    let left = start
    let begun: Buffer = EMPTY
    for (const piece of pieces) {
      const passed = Math.min(left, piece.length)
      left -= passed
      const rest = piece.subarray(passed)
      const bytes = begun.length === 0 ? rest : Buffer.concat([begun, rest])
      const end = Math.max(0, bytes.length - END.length)
      if (!this.#search(bytes, end)) return undefined
      begun = bytes.subarray(end)
    }
    return this.#search(Buffer.concat([begun, END]), begun.length)
      ? this.#samples / this.#rate + this.#seconds
      : undefined
  }

  /** Counts the frames that begin before `end`; false beyond the budget. */
  #search(bytes: Buffer, end: number): boolean {
    const budget = this.#budget
    budget.steps -= STEPS.piece + end * STEPS.byte
    for (let at = bytes.indexOf(SYNC); at >= 0 && at < end; at = bytes.indexOf(SYNC, at + 1)) {
      budget.steps -= STEPS.begin
      if (budget.steps <= 0) return false
      if ((bytes[at + 1]! & 0xfe) === 0xf8) this.#count(bytes, at)
    }
    return budget.steps > 0
  }

  /** The head of a frame (section 9.1): codes, the number of the frame, what the codes leave to say, and a check of all. */
  #count(bytes: Buffer, at: number): void {
    const codes = bytes[at + 2]!
    const block = codes >>> 4
    const rate = codes & 15
    const shape = bytes[at + 3]!
    if (block === 0 || rate === 15 || shape >>> 4 > 10 || (shape & 0x0e) === 0x06 || (shape & 1) === 1) return
    const number = numberBytes(bytes, at + 4)
    if (number === 0) return
    const ofBlock = at + 4 + number
    const ofRate = ofBlock + (block === 6 ? 1 : block === 7 ? 2 : 0)
    const end = ofRate + (rate === 12 ? 1 : rate > 12 ? 2 : 0)
    if (checkOf(bytes, at, end) !== bytes[end]) return
    const samples = samplesOf(block, bytes, ofBlock)
    // Some decoders play all frames at the rate of the file.
    const said = rateOf(rate, bytes, ofRate)
    if (said > 0 && said < this.#rate) this.#seconds += samples / said
    else this.#samples += samples
  }
}

/** Bytes of a number in the form of UTF-8, of up to 36 bits; 0 for none. */
function numberBytes(bytes: Buffer, at: number): number {
  const ones = Math.clz32(~(bytes[at]! << 24))
  if (ones === 0) return 1
  if (ones === 1 || ones === 8) return 0
  for (let next = 1; next < ones; next++) if ((bytes[at + next]! & 0xc0) !== 0x80) return 0
  return ones
}

function samplesOf(code: number, bytes: Buffer, at: number): number {
  if (code === 1) return 192
  if (code < 6) return 144 << code
  return code === 6 ? bytes[at]! + 1 : code === 7 ? bytes.readUInt16BE(at) + 1 : 1 << code
}

const RATES = [0, 88_200, 176_400, 192_000, 8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000]

function rateOf(code: number, bytes: Buffer, at: number): number {
  if (code < RATES.length) return RATES[code]!
  return code === 12 ? bytes[at]! * 1000 : bytes.readUInt16BE(at) * (code === 14 ? 10 : 1)
}

/** By the polynomial x^8 + x^2 + x + 1. */
const CHECKS = Uint8Array.from({ length: 256 }, (_, byte) => {
  let check = byte
  for (let bit = 0; bit < 8; bit++) check = (check << 1) ^ (check & 0x80 ? 0x07 : 0)
  return check
})

function checkOf(bytes: Buffer, from: number, end: number): number {
  let check = 0
  for (let at = from; at < end; at++) check = CHECKS[check ^ bytes[at]!]!
  return check
}
