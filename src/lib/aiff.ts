/** The length of AIFF and AIFF-C (Apple's Audio Interchange File Format, versions 1.3 and C). */
import { PROOF_BYTES } from './audio-frame.ts'
import { holdsFrames } from './frame-seconds.ts'

/** Bits of a sample by its compression: as the file says, or one number. AIFF has no compression. */
const COMPRESSIONS: ReadonlyMap<string, readonly number[]> = new Map([
  ['NONE', [8, 16, 24, 32]],
  ['twos', [8, 16, 24, 32]],
  ['sowt', [8, 16]],
  ['fl32', [32]],
  ['FL32', [32]],
  ['fl64', [64]],
  ['FL64', [64]],
])
/** A byte a sample, whatever the file says. */
const LAWS = new Set(['ulaw', 'ULAW', 'alaw', 'ALAW'])

const FORM_HEAD = 12
const CHUNK_HEAD = 8
/** Channels, frames, bits of a sample, and samples a second; of AIFF-C its compression as well. */
const COMMON = 18
const COMMON_COMPRESSED = 22
/** Bytes from the begin of the samples within which frames may begin that some decoders play in their place. */
const FRAMES_WITHIN = 1024

/**
 * Seconds of a file of `size` bytes that begins with `head`, all of it behind its format as samples. Undefined for other files,
 * for compressed and odd samples, where the format is not before the samples, and where these begin with frames of MPEG.
 */
export function aiffSeconds(head: Buffer, size: number): number | undefined {
  const [, kind] = /^FORM.{4}AIF([FC])/s.exec(head.toString('latin1', 0, FORM_HEAD)) ?? []
  if (kind === undefined) return undefined
  let slowest: number | undefined
  for (let at = FORM_HEAD; at + CHUNK_HEAD <= head.length; ) {
    const name = head.toString('latin1', at, at + 4)
    const length = head.readUInt32BE(at + 4)
    at += CHUNK_HEAD
    if (name === 'SSND') {
      const begin = head.subarray(at, at + FRAMES_WITHIN + PROOF_BYTES)
      return slowest && !holdsFrames(begin, FRAMES_WITHIN) ? (size - at) / slowest : undefined
    }
    if (name === 'COMM') slowest = Math.min(slowest ?? Infinity, bytesPerSecond(head, at, kind === 'C'))
    at += length + (length % 2)
  }
  return undefined
}

/** Of the samples that a common chunk at this place describes; 0 for others. */
function bytesPerSecond(head: Buffer, at: number, isCompressed: boolean): number {
  if (at + (isCompressed ? COMMON_COMPRESSED : COMMON) > head.length) return 0
  const compression = isCompressed ? head.toString('latin1', at + COMMON, at + COMMON_COMPRESSED) : 'NONE'
  const said = head.readUInt16BE(at + 6)
  const bits = LAWS.has(compression) ? 8 : (COMPRESSIONS.get(compression)?.find(bits => bits === said) ?? 0)
  return (head.readUInt16BE(at) * samplesPerSecond(head, at + 8) * bits) / 8
}

/** A number of 80 bits (IEEE 754 extended): 15 of exponent, 64 of mantissa. 0 for none that decoders play. */
function samplesPerSecond(head: Buffer, at: number): number {
  const exponent = head.readUInt16BE(at) - EXPONENT_OF_ONE
  return exponent < 0 || exponent > MAX_EXPONENT ? 0 : Math.floor(head.readUInt32BE(at + 2) * 2 ** (exponent - 31))
}
const EXPONENT_OF_ONE = 16_383
/** Rates have 32 bits. */
const MAX_EXPONENT = 31
