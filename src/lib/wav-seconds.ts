/** The length of a WAV file, by its size and the format of its samples. */
import { PROOF_BYTES } from './audio-frame.ts'
import type { ByteReader } from './byte-reader.ts'
import { holdsFrames } from './frame-seconds.ts'
import { beginsOther, holdsOther } from './other-streams.ts'

const RIFF_HEAD = 12
const CHUNK_HEAD = 8
/** Of a format, what is read of it, and the least of one. */
const FORMAT = 26
const LEAST_FORMAT = 16
/** Lengths of data that are unknown. */
const UNKNOWN = new Set([0, 0xffff_ffff])

/**
 * Seconds of all in `size` bytes behind the head of the first data: its length is unknown in a streamed file, and other data
 * may follow it. Undefined where there are none, for samples that are compressed or odd, where data begin with frames, or hold
 * what decoders look for in samples, which they play whatever the format is, and for more chunks than `budget` has steps.
 */
export function wavSeconds(size: number, reader: () => ByteReader, budget: { steps: number }): number | undefined {
  const format = new Format()
  const chunks = reader()
  let isWhole = chunks.skip(RIFF_HEAD)
  let first: number | undefined
  for (let at = RIFF_HEAD; isWhole; ) {
    const head = chunks.take(CHUNK_HEAD)
    if (head.length < CHUNK_HEAD) break
    if (budget.steps-- <= 0) return undefined
    at += CHUNK_HEAD
    const name = head.toString('latin1', 0, 4)
    const length = head.readUInt32LE(4)
    let left = length + (length % 2)
    if (name === 'fmt ') {
      const fields = chunks.take(Math.min(left, FORMAT))
      format.read(fields)
      left -= fields.length
      at += fields.length
    } else if (name === 'data') {
      first ??= at
      const data = reader()
      data.skip(at)
      if (!format.bytesPerSecond || playsOtherwise(data, format, budget)) return undefined
      if (UNKNOWN.has(length)) break
    }
    at += left
    // What is known to be the last one is not read.
    isWhole = at < size && chunks.skip(left)
  }
  return first === undefined ? undefined : (size - first) / format.bytesPerSecond!
}

/** Of data, behind zeros, where frames may begin; what is read of them; and what it costs at most to look for them. */
const FRAMES_WITHIN = 1024
const FRAMES_READ = FRAMES_WITHIN + PROOF_BYTES
const FRAMES_STEPS = 512
/** Decoders look for frames in the first packets of samples of 16 bits, of a tenth of a second or of these bytes. */
const PACKETS = 32
const PACKET_BYTES = 4096
const PACKETS_PER_SECOND = 10
/** Of all samples, for bursts of IEC 61937. */
const PROBED = 64 * 1024
/** More of samples a second than speech has is not looked at. */
const MOST_PROBED = 2 * 1024 * 1024

function playsOtherwise(data: ByteReader, format: Format, budget: { steps: number }): boolean {
  budget.steps -= FRAMES_STEPS
  const packet = Math.max(PACKET_BYTES, format.blockBytes, format.mostBytesPerSecond / PACKETS_PER_SECOND)
  const probed = format.isShort ? Math.ceil(PACKETS * packet) : PROBED
  if (probed > MOST_PROBED) return true
  const bytes = data.take(probed + FRAMES_READ)
  let begin = 0
  while (begin < probed && bytes[begin] === 0) begin++
  const isFrames = holdsFrames(bytes.subarray(begin, begin + FRAMES_READ), FRAMES_WITHIN)
  const samples = bytes.subarray(0, probed)
  return isFrames || beginsOther(samples, 'samples') || holdsOther(samples, 'samples', budget)
}

/** Tags of samples that are not compressed: whole numbers, floats, A-law and mu-law. */
const PLAIN_FORMATS = new Set([1, 3, 6, 7])
/** Those of a byte, whatever the format says. */
const LAW_FORMATS = new Set([6, 7])
/** The tag stands at the end of the format, behind the bits of a sample that are used. */
const EXTENSIBLE = 0xfffe
/** Of samples that decoders play. */
const SAMPLE_BITS = new Set([8, 16, 24, 32, 64])

/** All formats of a file. */
class Format {
  /** Of the slowest; 0 for compressed samples, and for odd ones. */
  bytesPerSecond: number | undefined
  mostBytesPerSecond = 0
  /** Of samples that are read together. */
  blockBytes = 0
  /** Whether samples may have 16 bits. */
  isShort = false

  /**
   * A WAVEFORMATEX. Decoders do not read its own byte rate, and some take the bits that are used for all that a sample has.
   */
  read(fields: Buffer): void {
    if (fields.length < LEAST_FORMAT) return
    const isExtensible = fields.readUInt16LE(0) === EXTENSIBLE && fields.length >= FORMAT
    const tag = fields.readUInt16LE(isExtensible ? 24 : 0)
    const all = LAW_FORMATS.has(tag) ? 8 : fields.readUInt16LE(14)
    const used = isExtensible ? fields.readUInt16LE(18) : 0
    const bytes =
      PLAIN_FORMATS.has(tag) && SAMPLE_BITS.has(all) ? Math.ceil((used > 0 ? Math.min(all, used) : all) / 8) : 0
    const rate = fields.readUInt32LE(4) * fields.readUInt16LE(2) * bytes
    this.bytesPerSecond = Math.min(this.bytesPerSecond ?? Infinity, rate)
    this.mostBytesPerSecond = Math.max(this.mostBytesPerSecond, rate)
    this.blockBytes = Math.max(this.blockBytes, fields.readUInt16LE(12))
    this.isShort ||= bytes === 2
  }
}
