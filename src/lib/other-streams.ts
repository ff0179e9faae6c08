/**
 * Streams that decoders look for anywhere in the first bytes of a file, and play in place of what it begins with. Others,
 * such as Ogg, Matroska and FLAC, they take only from its first byte, so that what looks like them behind a frame is none.
 */
import { frameBytes } from './audio-frame.ts'

/** What they look for in samples, which is frames alone, and in a file that begins with frames of MPEG or of ADTS. */
export type Around = 'samples' | 'mpeg' | 'adts'

/** Frames of another kind end to end, wherever they begin: decoders take 101 for proof. */
const CHAIN = 64
/** The same at the first byte of samples, where they take 3. */
const CHAIN_AT_BEGIN = 3
/** Starts of packets of audio without a pack. */
const MOST_PACKETS = 12
/** Packets of a transport stream of ten in a row. */
const LEAST_OF_TEN = 6
/** Marks of four bytes that stand anywhere by accident, or, in samples, at any of 16 bits. */
const MOST_MARKS = 2

/** One pass; `budget` has a step less for each 32 bytes, and for each eight at which something may begin. */
export function holdsOther(bytes: Buffer, around: Around, budget: { steps: number }): boolean {
  const search = new Search(bytes, around)
  const isFound = search.run()
  budget.steps -= (bytes.length >>> BYTES_OF_STEP) + (search.looks >>> LOOKS_OF_STEP)
  return isFound
}
const BYTES_OF_STEP = 5
const LOOKS_OF_STEP = 3

/** Whether `bytes`, the first ones behind all tags, begin what is found there alone. */
export const beginsOther = (bytes: Buffer, around: Around): boolean =>
  around === 'samples'
    ? isAct(bytes) || beginsFrames(bytes)
    : BOXES.has(bytes.toString('latin1', 4, 8)) || holdsSpeech(bytes)

/** ISO 14496-12: boxes that begin a file, the sizes of which may look like frames. */
const BOXES = new Set(['ftyp', 'moov', 'mdat', 'udta', 'pnot', 'wide', 'free', 'skip', 'junk', 'pict', 'uuid', 'prfl'])

/** Frames of one kind, by where they end. */
class Chains {
  /** A place, and behind it, in eight bits, how many frames end there. */
  readonly #ends: Uint32Array

  /** `longest`: bytes of a frame, a power of two at least. */
  constructor(longest: number) {
    this.#ends = new Uint32Array(longest)
  }

  /** Whether a frame of `bytes` at a place is the last one of enough. */
  add(at: number, bytes: number): boolean {
    const ends = this.#ends
    const mask = ends.length - 1
    const before = ends[at & mask]!
    const frames = before >>> 8 === at ? (before & 0xff) + 1 : 1
    const end = at + bytes
    const other = ends[end & mask]!
    if (other >>> 8 !== end || (other & 0xff) < frames) ends[end & mask] = ((end << 8) | frames) >>> 0
    return frames >= CHAIN
  }
}

class Search {
  looks = 0
  readonly #bytes: Buffer
  readonly #around: Around
  readonly #loas = new Chains(16_384)
  readonly #frames = new Chains(16_384)
  readonly #ac3 = new Chains(8192)
  #packets = 0
  #marks = 0

  constructor(bytes: Buffer, around: Around) {
    this.#bytes = bytes
    this.#around = around
  }

  run(): boolean {
    const bytes = this.#bytes
    const last = bytes.length - LONGEST_LOOK
    for (let at = 0; at <= last; at++) {
      const first = bytes[at]!
      if (BEGINS[first] === 0) continue
      this.looks++
      // Quiet samples are full of these.
      if (first === 0xff && bytes[at + 1]! >= 0xe0 && !mayBeFrame(bytes, at)) continue
      if (this.#isAt(bytes, at)) return true
    }
    return false
  }

  #isAt(bytes: Buffer, at: number): boolean {
    switch (bytes[at]) {
      case 0xff:
        return bytes[at + 1]! < 0xe0 ? this.#isMark(at) : this.#isFrame(at)
      case 0x56: {
        const size = loasBytes(bytes, at)
        return size > 0 && this.#loas.add(at, size)
      }
      case 0x0b:
      case 0x77: {
        const size = ac3Bytes(bytes, at)
        return size > 0 && this.#ac3.add(at, size)
      }
      case 0x01:
        return this.#around !== 'samples' && this.#isPacket(at)
      case 0x47:
        return this.#around !== 'samples' && bytes.length !== FIRST_PROBED && isTransport(bytes, at)
      case 0x06:
        return isLong(bytes, at, MXF)
      case 0x4e:
        return isLong(bytes, at, NUT)
      default:
        return this.#isMark(at)
    }
  }

  #isFrame(at: number): boolean {
    const bytes = this.#bytes
    const kind = (bytes[at + 1]! & 6) === 0 ? 'adts' : 'mpeg'
    if (kind === this.#around) return false
    const size = frameBytes(bytes, at)
    return size > 0 && this.#frames.add(at, size)
  }

  /** ISO 13818-1 section 2.5: a pack, or a packet of audio with what may stand behind its length. */
  #isPacket(at: number): boolean {
    const bytes = this.#bytes
    if (at < 2 || bytes[at - 1] !== 0 || bytes[at - 2] !== 0) return false
    const kind = bytes[at + 1]!
    if (kind === 0xba) return (bytes[at + 2]! & 0xc0) === 0x40 || (bytes[at + 2]! & 0xf0) === 0x20
    const next = bytes[at + 4]!
    const isFirst = next === 0xff || next === 0x0f || (next & 0xc0) === 0x40 || (next & 0xe0) === 0x20
    return (kind & 0xe0) === 0xc0 && (isFirst || (next & 0xc0) === 0x80) && ++this.#packets > MOST_PACKETS
  }

  #isMark(at: number): boolean {
    const bytes = this.#bytes
    const mark = MARKS[bytes[at]!]!
    const isMark = bytes[at + 1] === mark >>> 16 && (bytes[at + 2]! << 8) + (bytes[at + 3]! & 0xfe) === (mark & 0xfffe)
    if (!isMark || !goesOn(bytes, at) || (this.#around === 'samples' && at % 2 === 1)) return false
    return ++this.#marks > MOST_MARKS
  }
}

/** The bytes at which something may begin. */
const BEGINS = new Uint8Array(256)
/**
 * By the first byte of a mark, the three behind it: of DTS in words of 16 and of 14 bits, of MLP and TrueHD, which differ
 * in the last bit, and of IEC 61937, which wraps them.
 */
const MARKS = new Uint32Array(256)
for (const mark of [0x7ffe_8001, 0xfe7f_0180, 0x1fff_e800, 0xff1f_00e8, 0xf872_6fba, 0x72f8_1f4e]) {
  MARKS[mark >>> 24] = mark & 0xff_ffff
  BEGINS[mark >>> 24] = 1
}
const MXF = Buffer.from([0x06, 0x0e, 0x2b, 0x34, 0x02, 0x05, 0x01, 0x01, 0x0d, 0x01, 0x02, 0x01])
const NUT = Buffer.from([0x4e, 0x4d, 0x7a, 0x56, 0x1f, 0x5f, 0x04, 0xad])
for (const byte of [0xff, 0x56, 0x0b, 0x77, 0x01, 0x47, MXF[0]!, NUT[0]!]) BEGINS[byte] = 1
/** Bytes that are read from where something may begin, but for a transport stream. */
const LONGEST_LOOK = MXF.length

/** Marks of DTS are in samples as well: behind them all blocks of a frame are whole. */
function goesOn(bytes: Buffer, at: number): boolean {
  const first = bytes[at + 4]!
  const second = bytes[at + 5]!
  switch (bytes[at]) {
    case 0x7f:
      return (first & 0x7c) === 0x7c
    case 0xfe:
      return (second & 0x7c) === 0x7c
    case 0x1f:
      return first === 0x07 && second >= 0xf0
    case 0xff:
      return second === 0x07 && first >= 0xf0
    default:
      return true
  }
}

const isLong = (bytes: Buffer, at: number, mark: Buffer): boolean =>
  bytes[at + 1] === mark[1] && bytes.compare(mark, 0, mark.length, at, at + mark.length) === 0

/** The bytes of a frame of MPEG that say its rates are none of quiet samples. */
function mayBeFrame(bytes: Buffer, at: number): boolean {
  const rates = bytes[at + 2]!
  return (bytes[at + 1]! & 6) === 0 || (rates >= 0x10 && rates < 0xf0 && (rates & 0x0c) !== 0x0c)
}

/** ISO 14496-3 section 1.7.2; 0 for none. */
function loasBytes(bytes: Buffer, at: number): number {
  const next = bytes[at + 1]!
  const size = ((next & 0x1f) << 8) + bytes[at + 2]! + 3
  return bytes[at] === 0x56 && next >= 0xe0 && size >= 7 ? size : 0
}

/** Kilobits a second. */
const AC3_RATES = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640]
/** Samples a second. */
const AC3_SAMPLES = [48_000, 44_100, 32_000]

/** ETSI TS 102 366 sections 5.3.1 and E.1.2, in either order of bytes; 0 for none. */
function ac3Bytes(bytes: Buffer, at: number): number {
  const swap = bytes[at] === 0x77 ? 1 : 0
  if (bytes[at + swap] !== 0x0b || bytes[at + 1 - swap] !== 0x77) return 0
  const id = bytes[at + 5 - swap]! >>> 3
  if (id > 10) return id > 16 ? 0 : ((((bytes[at + 2 + swap]! & 7) << 8) | bytes[at + 3 - swap]!) + 1) * 2
  const code = bytes[at + 4 + swap]!
  const samples = AC3_SAMPLES[code >>> 6]
  const rate = AC3_RATES[(code & 0x3f) >>> 1]
  if (samples === undefined || rate === undefined) return 0
  return (Math.floor((rate * 96_000) / samples) + (samples === 44_100 ? code & 1 : 0)) * 2
}

/** Of so few bytes, decoders prefer what is proven in them. */
const FIRST_PROBED = 2048
/** ISO 13818-1 section 2.4.3: bytes of a packet, the same with a time before it, and with a check of it. */
const TRANSPORT = [188, 192, 204]
const PACKETS = 10

function isTransport(bytes: Buffer, begin: number): boolean {
  if (!isTransportHead(bytes, begin)) return false
  for (const size of TRANSPORT) {
    let packets = 1
    let missing = 0
    for (let at = begin + size; missing <= PACKETS - LEAST_OF_TEN && at + 3 < bytes.length; at += size) {
      if (!isTransportHead(bytes, at)) missing++
      else if (++packets === LEAST_OF_TEN) return true
    }
  }
  return false
}

/** One that carries something, or is empty. */
const isTransportHead = (bytes: Buffer, at: number): boolean =>
  bytes[at] === 0x47 && ((bytes[at + 3]! & 0x30) !== 0 || (bytes[at + 2] === 0xff && (bytes[at + 1]! & 0x1f) === 0x1f))

/** ACT, of some dictaphones: G.729 in a file that looks like WAV. */
const isAct = (bytes: Buffer): boolean =>
  bytes[256] === 0x84 && bytes.toString('latin1', 0, 4) === 'RIFF' && isZero(bytes, 44, 256) && isZero(bytes, 264, 512)

const isZero = (bytes: Buffer, from: number, to: number): boolean =>
  to <= bytes.length && bytes.subarray(from, to).every(byte => byte === 0)

/** Frames at the first byte, of kinds that are looked for there with less proof than elsewhere. */
function beginsFrames(bytes: Buffer): boolean {
  for (const size of [loasBytes, ac3Bytes]) {
    let frames = 0
    for (let at = 0; at + 6 <= bytes.length; frames++) {
      const length = size(bytes, at)
      if (length === 0) break
      at += length
    }
    if (frames >= CHAIN_AT_BEGIN) return true
  }
  return false
}

/** Bytes of frames of AMR and AMR-WB (RFC 4867 section 5.3) by their type; 0 for types of no speech. */
const AMR = [
  [13, 14, 16, 18, 20, 21, 27, 32, 6, 0, 0, 0, 0, 0, 0, 0],
  [18, 24, 33, 37, 41, 47, 51, 59, 61, 6, 0, 0, 0, 0, 0, 0],
]
const GSM_BYTES = 33

/** Speech that has no mark: AMR goes on as its frames say, where the last one ended; GSM is of one size from the first byte. */
function holdsSpeech(bytes: Buffer): boolean {
  let gsm = 0
  for (let at = GSM_BYTES; at < bytes.length && (bytes[at]! & 0xf0) === 0xd0; at += GSM_BYTES) gsm++
  return gsm >= CHAIN / 2 || AMR.some(sizes => holdsAmr(bytes, sizes))
}

function holdsAmr(bytes: Buffer, sizes: readonly number[]): boolean {
  let frames = 0
  for (let at = 0; at < bytes.length; ) {
    const head = bytes[at]!
    const size = sizes[(head >>> 3) & 15]!
    if (size === 0 || (head & 4) === 0) {
      frames = 0
      at++
    } else {
      if (!isFilled(bytes, at, size) && ++frames >= CHAIN) return true
      at += size
    }
  }
  return false
}

/** Whether all bytes are one: no frame, and no end of those before it. */
function isFilled(bytes: Buffer, at: number, size: number): boolean {
  for (let next = at + 1; next < at + size; next++) if (bytes[next] !== bytes[at]) return false
  return true
}
