/** The length of Opus and Vorbis in an Ogg file (RFC 3533, RFC 7845, Vorbis I section 4.2 and appendix A). */
import type { AudioLength } from './audio-seconds.ts'
import type { ByteReader } from './byte-reader.ts'
import { packetSeconds } from './opus-packets.ts'

const PAGE_HEAD = 27
/** A packet ends in the first segment that is not full. */
const FULL = 255
const CONTINUED = 1
/** Steps of a page, of a stream, of a segment, of a byte, and of a byte at which another page may begin. */
const STEPS = { page: 4, stream: 64, segment: 1 / 4, byte: 1 / 1024, begin: 1 / 4 }
/** `OggS`. */
const PAGE = 0x4f67_6753
const PAGE_BEGIN = PAGE >>> 24
/** The first packets of a stream, which are no audio. */
const OPUS_HEADERS = 2
const VORBIS_HEADERS = 3
/** A head of Vorbis with its mark. */
const VORBIS_HEAD = 30
const VORBIS = '\x01vorbis'
/** Of speech, packets play about a third of what they can. */
const MOST_SHORTER = 4

/** One logical stream. */
abstract class Stream {
  #headers: number
  /** Whether its next segment begins a packet. */
  #begins = true

  constructor(headers: number) {
    this.#headers = headers
  }

  abstract readonly seconds: number
  protected abstract packet(body: Buffer, at: number, length: number): void
  /** The position that a page says of itself. */
  page(_samples: number): void {}

  /** Adds the packets that begin in a page. What a page before has begun and this one does not go on with is not played. */
  add(lacing: Buffer, body: Buffer, continues: boolean): void {
    let at = 0
    if (!continues) this.#begins = true
    for (const length of lacing) {
      if (this.#begins && this.#headers-- <= 0) this.packet(body, at, length)
      this.#begins = length < FULL
      at += length
    }
  }
}

class Opus extends Stream {
  seconds = 0

  constructor() {
    super(OPUS_HEADERS)
  }

  packet(body: Buffer, at: number, length: number): void {
    this.seconds += packetSeconds(body, at, length)
  }
}

/** As long as its pages say, within what its packets can play. */
class Vorbis extends Stream {
  readonly #rate: number
  /** Samples of a packet at most: half of the larger block. */
  readonly #most: number
  #packets = 0
  #samples = 0

  constructor(rate: number, most: number) {
    super(VORBIS_HEADERS)
    this.#rate = rate
    this.#most = most
  }

  packet(): void {
    this.#packets++
  }

  override page(samples: number): void {
    this.#samples = Math.max(this.#samples, samples)
  }

  get seconds(): number {
    const most = this.#packets * this.#most
    return Math.max(Math.min(this.#samples, most), most / MOST_SHORTER) / this.#rate
  }
}

function streamOf(body: Buffer): Stream | undefined {
  if (body.toString('latin1', 0, 8) === 'OpusHead') return new Opus()
  if (body.toString('latin1', 0, VORBIS.length) !== VORBIS || body.length < VORBIS_HEAD) return undefined
  const rate = body.readUInt32LE(12)
  const larger = Math.max(body[28]! >> 4, body[28]! & 15)
  return rate > 0 ? new Vorbis(rate, 2 ** larger / 2) : undefined
}

/**
 * Of all streams in `size` bytes; of Opus the packets that decoders play, whatever its pages say. Undefined for another codec,
 * for what is not made of pages, for pages within a page, which are played where it is broken, and for more pages and packets
 * than `budget` has steps.
 */
export function oggLength(reader: ByteReader, size: number, budget: { steps: number }): AudioLength | undefined {
  let left = size
  const streams = new Map<number, Stream>()
  while (budget.steps > 0) {
    const head = reader.take(PAGE_HEAD)
    if (head.length === 0) return left === 0 ? lengthOf([...streams.values()]) : undefined
    if (head.length < PAGE_HEAD || head.readUInt32BE(0) !== PAGE) return undefined
    const lacing = reader.take(head[26]!)
    const body = reader.take(lacing.reduce((sum, length) => sum + length, 0))
    left -= PAGE_HEAD + lacing.length + body.length
    if (holdsPage(Buffer.concat([head.subarray(1), lacing, body]), budget)) return undefined
    const serial = head.readUInt32LE(14)
    let stream = streams.get(serial)
    if (!stream) {
      stream = streamOf(body)
      if (!stream) return undefined
      streams.set(serial, stream)
      budget.steps -= STEPS.stream
    }
    budget.steps -= STEPS.page + lacing.length * STEPS.segment
    stream.page(Number(head.readBigInt64LE(6)))
    stream.add(lacing, body, (head[5]! & CONTINUED) !== 0)
  }
  return undefined
}

/** Each place at which a page may begin costs: `indexOf` is slow where there are many. */
function holdsPage(bytes: Buffer, budget: { steps: number }): boolean {
  budget.steps -= bytes.length * STEPS.byte
  for (let at = bytes.indexOf(PAGE_BEGIN); at >= 0; at = bytes.indexOf(PAGE_BEGIN, at + 1)) {
    budget.steps -= STEPS.begin
    if (at + 4 <= bytes.length && bytes.readUInt32BE(at) === PAGE) return true
  }
  return false
}

const lengthOf = (streams: readonly Stream[]): AudioLength => ({
  seconds: streams.reduce((sum, { seconds }) => sum + seconds, 0),
  counted: streams.every(stream => stream instanceof Opus),
})
