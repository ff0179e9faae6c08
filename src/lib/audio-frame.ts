/**
 * Heads of frames of MPEG audio (ISO 11172-3 section 2.4.2.3, ISO 13818-3) and of AAC in ADTS (ISO 13818-7 section 6.2).
 */

/** What is read of a frame: the head of ADTS, which is the longer one. */
export const HEAD = 7

export interface Frame {
  /** The same in all frames of a file; decoders do not play others with them. */
  readonly mark: number
  readonly bytes: number
  readonly samples: number
  /** Samples a second. */
  readonly rate: number
  /** The fewest bytes of a second. */
  readonly slowest: number
  /** Frames of its kind that are one by no accident. */
  readonly proof: number
}

/** Frames end to end that prove audio to be of their kind: quiet samples of 24 bits are full of heads of MPEG. */
const PROOF_MPEG = 6
const PROOF_AAC = 2
/** Of layer II: 1,152 samples at 8,000 a second, of 160 kbit/s, with padding. */
const LARGEST_MPEG = 2881
/** Bytes from the begin of the first of them that suffice. */
export const PROOF_BYTES = PROOF_MPEG * LARGEST_MPEG

/** Undefined for what is no frame, and for one of free format, which says no length. */
export const frameOf = (head: number, rest: number): Frame | undefined =>
  (head & ADTS_MASK) >>> 0 === ADTS ? adtsFrame(head, rest) : head >>> 21 === SYNC ? mpegFrame(head) : undefined

/** The same, of the length of a frame at a place with a head behind it; 0 for what is none. */
export function frameBytes(bytes: Buffer, at: number): number {
  const head = ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0
  if ((head & ADTS_MASK) >>> 0 !== ADTS) return head >>> 21 === SYNC ? (mpegFrame(head)?.bytes ?? 0) : 0
  const size = ((head & 3) << 11) | (bytes[at + 4]! << 3) | (bytes[at + 5]! >>> 5)
  return ADTS_RATES[(head >>> 10) & 15] === undefined || size < HEAD ? 0 : size
}

const SYNC = 0x7ff
const MPEG_MARK = 0xfffe_0c00
/** By version: 2.5, a reserved one, 2 and 1. Samples a second. */
const MPEG_RATES = [[11_025, 12_000, 8_000], [], [22_050, 24_000, 16_000], [44_100, 48_000, 32_000]] as const
const VERSION_1 = 3
const LAYER_1 = 3
const LAYER_3 = 1
/** Kilobits a second: layers I to III of version 1, layer I and the others of version 2. */
const BIT_RATES = {
  first: [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  ],
  second: [
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  ],
} as const
const SLOWEST_MPEG = 1_000

/** By the bits of a head that say it; null where they say none. */
const MPEG_FRAMES: (Frame | null | undefined)[] = Array.from({ length: 4096 })

function mpegFrame(head: number): Frame | undefined {
  const bits = (head >>> 9) & 0xfff
  if (MPEG_FRAMES[bits] === undefined) MPEG_FRAMES[bits] = newMpegFrame(head) ?? null
  return MPEG_FRAMES[bits] ?? undefined
}

function newMpegFrame(head: number): Frame | undefined {
  const version = (head >>> 19) & 3
  const layer = (head >>> 17) & 3
  const rate = MPEG_RATES[version]![(head >>> 10) & 3]
  const isFirst = version === VERSION_1
  const kilobits = BIT_RATES[isFirst ? 'first' : 'second'][LAYER_1 - layer]?.[((head >>> 12) & 15) - 1]
  if (rate === undefined || kilobits === undefined) return undefined
  const padding = (head >>> 9) & 1
  const samples = layer === LAYER_1 ? 384 : layer === LAYER_3 && !isFirst ? 576 : 1152
  // Layer I counts in slots of four bytes.
  const slot = layer === LAYER_1 ? 4 : 1
  const bytes = (Math.floor(((samples / 8 / slot) * kilobits * 1000) / rate) + padding) * slot
  return { mark: (head & MPEG_MARK) >>> 0, bytes, samples, rate, slowest: SLOWEST_MPEG, proof: PROOF_MPEG }
}

/** Whether audio that begins with a frame is of ADTS. */
export const isAdts = (bytes: Buffer): boolean => (bytes.readUInt32BE(0) & ADTS_MASK) >>> 0 === ADTS

const ADTS = 0xfff0_0000
const ADTS_MASK = 0xfff6_0000
const ADTS_MARK = 0xfffe_3c00
const ADTS_RATES = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
]
const AAC_SAMPLES = 1024
/** Frames of silence have some bytes beside their head. */
const SLOWEST_AAC = 80

function adtsFrame(head: number, rest: number): Frame | undefined {
  const rate = ADTS_RATES[(head >>> 10) & 15]
  const bytes = ((head & 3) << 11) | (rest >>> 13)
  if (rate === undefined || bytes < HEAD) return undefined
  const blocks = (rest & 3) + 1
  return {
    mark: (head & ADTS_MARK) >>> 0,
    bytes,
    samples: blocks * AAC_SAMPLES,
    rate,
    slowest: SLOWEST_AAC,
    proof: PROOF_AAC,
  }
}
