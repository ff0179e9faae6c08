/** The length of Opus in WebM and Matroska (RFC 8794, RFC 9559), as browsers record it. */
import type { ByteReader } from './byte-reader.ts'
import { Elements, numberIn, UNKNOWN, within } from './ebml.ts'
import { LetterNames } from './letter-names.ts'
import { PACKET_HEAD, packetSeconds } from './opus-packets.ts'

const HEAD = 0x1a45_dfa3
const DOC_TYPE = 0x4282
const SEGMENT = 0x1853_8067
const SEEK_HEAD = 0x114d_9b74
const SEEK = 0x4dbb
const SEEK_ID = 0x53ab
const SEEK_POSITION = 0x53ac
const INFO = 0x1549_a966
const TIMESTAMP_SCALE = 0x2a_d7b1
const TRACKS = 0x1654_ae6b
const TRACK = 0xae
const TRACK_NUMBER = 0xd7
const TRACK_TYPE = 0x83
const CODEC = 0x86
const ENCODINGS = 0x6d80
const CLUSTER = 0x1f43_b675
const TIMESTAMP = 0xe7
const SIMPLE_BLOCK = 0xa3
const BLOCK_GROUP = 0xa0
const BLOCK = 0xa1
const BLOCK_DURATION = 0x9b
const VOID = 0xec
const CRC = 0xbf

const VIDEO = 1
const AUDIO = 2
/** Nanoseconds of a tick, where nothing is said. */
const USUAL_SCALE = 1_000_000
/** Of a block whose track has a number below 128: that, its time, and its flags. */
const BLOCK_HEAD = 4
const LACING = 0x06
/** Of heads, which are read as a whole, and of the first one, by which decoders tell the type of a file. */
const MOST_HEAD = 64 * 1024
const MOST_FIRST = 512
/** Of an element, and of a byte. */
const STEP = 3 / 4
const BYTE_STEP = 1 / 256
/** Bytes in which marks are searched at a time. */
const SEARCHED = 64 * 1024

/** True for what begins as such a file. */
export const isWebm = (head: Buffer): boolean => head.length >= 4 && head.readUInt32BE(0) === HEAD

/**
 * Seconds of all packets of all tracks of Opus, which decoders play, or those from the first time of a block to the end of the
 * last one, where these are more: some decoders fill gaps. Undefined for other audio, for packets that are packed otherwise
 * than one to a block, for what is not made of elements within one another, for marks of clusters and of tracks elsewhere, where
 * decoders go on behind what they cannot read, and for more elements and bytes than `budget` has steps.
 */
export function webmSeconds(reader: () => ByteReader, size: number, budget: { steps: number }): number | undefined {
  const file = new WebmFile(size, budget)
  const seconds = file.read(reader())
  return seconds !== undefined && file.hasNoOtherMarks(reader()) ? seconds : undefined
}

/** The marks at which decoders begin anew behind what they cannot read. */
const MARKS = [CLUSTER, TRACKS]
const RESTARTS = new LetterNames('\x1f\x43\xb6\x75', '\x16\x54\xae\x6b')
const MARK = 4

class WebmFile {
  readonly #size: number
  readonly #budget: { steps: number }
  /** Of the elements with these marks, and of what names them. */
  readonly #marks = new Map(MARKS.map(mark => [mark, 0]))
  /** True for Opus, false for pictures, by the number of a track. */
  #tracks: Map<number, boolean> | undefined
  #scale: number | undefined
  /** In ticks. */
  #clusterTime = 0
  #blockTime = 0
  #first = Number.POSITIVE_INFINITY
  #lastTick = 0
  /** Beyond the last tick. */
  #longest = 0
  #seconds = 0

  constructor(size: number, budget: { steps: number }) {
    this.#size = size
    this.#budget = budget
  }

  read(reader: ByteReader): number | undefined {
    const elements = new Elements(reader)
    if (!nextIs(HEAD, elements) || !isHead(elements) || !nextIs(SEGMENT, elements)) return undefined
    // What stands behind a segment may be another one.
    if (elements.size !== UNKNOWN && elements.at + elements.size < this.#size) return undefined
    while (elements.next()) {
      this.#budget.steps -= STEP
      if (this.#budget.steps <= 0 || !this.#element(elements)) return undefined
    }
    if (elements.isBroken || this.#seconds === 0) return undefined
    const ticks = Math.max(0, this.#lastTick - this.#first)
    return Math.max(this.#seconds, (ticks * (this.#scale ?? USUAL_SCALE)) / 1e9 + this.#longest)
  }

  /** False where the file may be read in another way. */
  #element(elements: Elements): boolean {
    const { id, size } = elements
    // It is gone into, whatever its size: what it should not hold counts, too.
    if (id === CLUSTER) this.#count(CLUSTER, 1)
    else if (size === UNKNOWN) return false
    switch (id) {
      case CLUSTER:
      case BLOCK_GROUP:
        return true
      case SEGMENT:
        return false
      case SEEK_HEAD:
        return this.#seekHead(elements)
      case INFO:
        return size <= MOST_HEAD && this.#info(elements.take())
      case TRACKS:
        this.#count(TRACKS, 1)
        this.#tracks = this.#tracks || size > MOST_HEAD ? undefined : tracksIn(elements.take())
        return this.#tracks !== undefined
      case TIMESTAMP:
        this.#clusterTime = numberIn(elements.take(MOST_NUMBER))
        return size <= MOST_NUMBER
      case BLOCK_DURATION:
        this.#ends(this.#blockTime + numberIn(elements.take(MOST_NUMBER)), 0)
        return size <= MOST_NUMBER
      case SIMPLE_BLOCK:
      case BLOCK:
        return this.#block(elements.take(BLOCK_HEAD + PACKET_HEAD), size)
      default:
        elements.take(0)
        return true
    }
  }

  #block(head: Buffer, size: number): boolean {
    if (head.length < BLOCK_HEAD) return false
    const isOpus = this.#tracks?.get(head[0]! & 0x7f)
    if (head[0]! < 0x80 || isOpus === undefined || (head[3]! & LACING) !== 0) return false
    const seconds = isOpus ? packetSeconds(head, BLOCK_HEAD, size - BLOCK_HEAD) : 0
    this.#seconds += seconds
    this.#blockTime = this.#clusterTime + head.readInt16BE(1)
    this.#first = Math.min(this.#first, this.#blockTime)
    this.#ends(this.#blockTime, seconds)
    return true
  }

  #ends(tick: number, seconds: number): void {
    this.#lastTick = Math.max(this.#lastTick, tick)
    this.#longest = Math.max(this.#longest, seconds)
  }

  #info(bytes: Buffer): boolean {
    const elements = within(bytes)
    while (elements.next()) {
      if (elements.size === UNKNOWN) return false
      if (elements.id === TIMESTAMP_SCALE) {
        if (elements.size > MOST_NUMBER) return false
        this.#scale = Math.max(this.#scale ?? 0, numberIn(elements.take()))
      } else elements.take(0)
    }
    return !elements.isBroken
  }

  /** It names elements by their marks: nothing else may stand in it. */
  #seekHead(elements: Elements): boolean {
    if (elements.size > MOST_HEAD) return false
    const seeks = within(elements.take())
    while (seeks.next()) {
      if (seeks.size === UNKNOWN) return false
      if (seeks.id === SEEK) {
        const parts = within(seeks.take())
        while (parts.next()) {
          const isId = parts.id === SEEK_ID && parts.size === 4
          if (!isId && (parts.id !== SEEK_POSITION || parts.size > MOST_NUMBER || parts.size < 0)) return false
          const bytes = parts.take()
          if (isId && this.#marks.has(bytes.readUInt32BE(0))) this.#count(bytes.readUInt32BE(0), 1)
        }
        if (parts.isBroken) return false
      } else if (seeks.id === VOID || seeks.id === CRC) seeks.take(0)
      else return false
    }
    return !seeks.isBroken
  }

  #count(mark: number, more: number): void {
    this.#marks.set(mark, this.#marks.get(mark)! + more)
  }

  /** Whether all marks in the file are those that were read. */
  hasNoOtherMarks(reader: ByteReader): boolean {
    let searched = reader.take(SEARCHED)
    while (searched.length >= MARK) {
      this.#budget.steps -= searched.length * BYTE_STEP
      if (this.#budget.steps <= 0) return false
      for (let at = RESTARTS.next(searched); at >= 0; at = RESTARTS.next(searched, at + 1)) {
        this.#count(searched.readUInt32BE(at), -1)
      }
      const more = reader.take(SEARCHED)
      if (more.length === 0) break
      searched = Buffer.concat([searched.subarray(1 - MARK), more])
    }
    return [...this.#marks.values()].every(left => left === 0)
  }
}

const nextIs = (id: number, elements: Elements): boolean => elements.next() && elements.id === id

/** Decoders tell the type of the file by it. */
function isHead(elements: Elements): boolean {
  if (elements.size === UNKNOWN || elements.size > MOST_FIRST) return false
  const parts = within(elements.take())
  let isWebmType = false
  while (parts.next()) {
    if (parts.size === UNKNOWN) return false
    if (parts.id === DOC_TYPE) isWebmType = /^(?:webm|matroska)$/.test(parts.take().toString('latin1'))
    else parts.take(0)
  }
  return isWebmType && !parts.isBroken
}

/** By their numbers, whether they are Opus; the others are pictures. Undefined for other tracks. */
function tracksIn(bytes: Buffer): Map<number, boolean> | undefined {
  const tracks = new Map<number, boolean>()
  const elements = within(bytes)
  while (elements.next()) {
    if (elements.size === UNKNOWN) return undefined
    if (elements.id !== TRACK) elements.take(0)
    else {
      const track = trackIn(elements.take())
      if (!track || tracks.has(track.number)) return undefined
      tracks.set(track.number, track.isOpus)
    }
  }
  return elements.isBroken ? undefined : tracks
}

function trackIn(bytes: Buffer): { readonly number: number; readonly isOpus: boolean } | undefined {
  const found = new Map<number, Buffer>()
  const elements = within(bytes)
  while (elements.next()) {
    const { id, size } = elements
    // Of two, decoders may take either; encoded packets begin otherwise.
    if (size === UNKNOWN || id === ENCODINGS || found.has(id)) return undefined
    if (id === TRACK_NUMBER || id === TRACK_TYPE || id === CODEC) found.set(id, elements.take())
    else elements.take(0)
  }
  const number = numberIn(found.get(TRACK_NUMBER) ?? NOTHING)
  const type = numberIn(found.get(TRACK_TYPE) ?? NOTHING)
  const codec = found.get(CODEC)?.toString('latin1') ?? ''
  const isOpus = type === AUDIO && codec === 'A_OPUS'
  if (elements.isBroken || !(isOpus || (type === VIDEO && codec.startsWith('V_')))) return undefined
  return { number, isOpus }
}

const NOTHING = Buffer.alloc(0)
/** Bytes of a number. */
const MOST_NUMBER = 8
