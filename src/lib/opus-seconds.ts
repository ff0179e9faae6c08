/** The length of Opus in an Ogg file (RFC 3533, RFC 7845). */
import type { ByteReader } from './byte-reader.ts'

const PAGE_HEAD = 27
/** A packet ends in the first segment that is not full. */
const FULL = 255
/** The first packets of a stream, which are no audio. */
const HEADERS = 2
const CONTINUED = 1
/** Steps of a page, of a stream, of a segment, of a byte, and of a byte at which another page may begin. */
const STEPS = { page: 4, stream: 64, segment: 1 / 4, byte: 1 / 1024, begin: 1 / 4 }
/** `OggS`. */
const PAGE = 0x4f67_6753
const PAGE_BEGIN = PAGE >>> 24

/** One logical stream. */
interface Stream {
  packets: number
  seconds: number
  /** Whether its next segment begins a packet. */
  begins: boolean
}

/**
 * Seconds of all packets of all streams in `size` bytes, which decoders play, whatever its pages say. Undefined for another
 * codec, for what is not made of pages, for pages within a page, which are played where it is broken, and for more pages
 * and packets than `budget` has steps.
 */
export function opusSeconds(reader: ByteReader, size: number, budget: { steps: number }): number | undefined {
  let left = size
  const streams = new Map<number, Stream>()
  while (budget.steps > 0) {
    const head = reader.take(PAGE_HEAD)
    if (head.length === 0) {
      const seconds = [...streams.values()].reduce((sum, stream) => sum + stream.seconds, 0)
      return left === 0 ? seconds : undefined
    }
    if (head.length < PAGE_HEAD || head.readUInt32BE(0) !== PAGE) return undefined
    const lacing = reader.take(head[26]!)
    const body = reader.take(lacing.reduce((sum, length) => sum + length, 0))
    left -= PAGE_HEAD + lacing.length + body.length
    if (holdsPage(Buffer.concat([head.subarray(1), lacing, body]), budget)) return undefined
    const serial = head.readUInt32LE(14)
    let stream = streams.get(serial)
    if (!stream) {
      if (body.toString('latin1', 0, 8) !== 'OpusHead') return undefined
      stream = { packets: 0, seconds: 0, begins: true }
      streams.set(serial, stream)
      budget.steps -= STEPS.stream
    }
    budget.steps -= STEPS.page + lacing.length * STEPS.segment
    // What a page before has begun and this one does not go on with is not played.
    if ((head[5]! & CONTINUED) === 0) stream.begins = true
    count(stream, lacing, body)
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

/** Adds the packets that begin in a page. */
function count(stream: Stream, lacing: Buffer, body: Buffer): void {
  let at = 0
  for (const length of lacing) {
    if (stream.begins && ++stream.packets > HEADERS) stream.seconds += secondsAt(body, at, length)
    stream.begins = length < FULL
    at += length
  }
}

/** Milliseconds of a frame by its configuration (RFC 6716 section 3.1): of SILK, of the hybrid of both, and of CELT. */
const SILK = [10, 20, 40, 60]
const HYBRID = [10, 20]
const CELT = [2.5, 5, 10, 20]
/** Of any packet, and of one that is lost, which some decoders fill. */
const LONGEST = 0.12

function secondsAt(body: Buffer, at: number, length: number): number {
  if (length === 0 || at >= body.length) return LONGEST
  const head = body[at]!
  const config = head >> 3
  const ms = config < 12 ? SILK[config % 4]! : config < 16 ? HYBRID[config % 2]! : CELT[config % 4]!
  const code = head & 3
  const frames = code === 0 ? 1 : code < 3 ? 2 : length < 2 ? 0 : body[at + 1]! & 63
  return Math.min((frames * ms) / 1000, LONGEST)
}
