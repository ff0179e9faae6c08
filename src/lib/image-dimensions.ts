/** Reads width and height from the first bytes of an image: PNG, JPEG and WebP. */

/** In pixels. */
export interface Dimensions {
  readonly width: number
  readonly height: number
}

/** Bytes of the head that say so, of all but JPEG. */
export const DIMENSIONS_HEAD = 33
/** Bytes of a JPEG to look through, one number after the other: metadata may stand before its frame. */
export const JPEG_HEADS = [4 * 1024, 64 * 1024] as const

/** Undefined where the head does not say it: decoders of GIF take what its frames need. */
export function imageDimensions(head: Buffer): Dimensions | undefined {
  if (head.length < DIMENSIONS_HEAD) return undefined
  const { width, height } = png(head) ?? webp(head) ?? (head.readUInt16BE(0) === SOI ? jpeg(head) : undefined) ?? NONE
  return width > 0 && height > 0 ? { width, height } : undefined
}
const NONE: Dimensions = { width: 0, height: 0 }

const signOf = (head: Buffer, from: number, length: number): string => head.toString('latin1', from, from + length)

/** The header chunk is the first one (PNG specification, section 5.6). */
const png = (head: Buffer): Dimensions | undefined =>
  signOf(head, 0, 8) === '\x89PNG\r\n\x1a\n' && signOf(head, 12, 4) === 'IHDR'
    ? { width: head.readUInt32BE(16), height: head.readUInt32BE(20) }
    : undefined

/** Lossy, lossless, extended (RFC 9649, sections 2.5 to 2.7). */
function webp(head: Buffer): Dimensions | undefined {
  if (signOf(head, 0, 4) !== 'RIFF' || signOf(head, 8, 4) !== 'WEBP') return undefined
  switch (signOf(head, 12, 4)) {
    case 'VP8 ':
      return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff }
    case 'VP8L': {
      const bits = head.readUInt32LE(21)
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
    }
    case 'VP8X':
      return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 }
    default:
      return undefined
  }
}

const SOI = 0xffd8
/** Of ITU-T T.81, table B.1: what begins a frame, except tables and extensions with numbers among these. */
const FIRST_FRAME = 0xc0
const LAST_FRAME = 0xcf
const NO_FRAMES = new Set([0xc4, 0xc8, 0xcc])
const SCAN = 0xda
const END = 0xd9

/** Of the first frame header; segments before it are passed over by their lengths. */
function jpeg(head: Buffer): Dimensions | undefined {
  let at = 2
  while (at + 9 <= head.length && head[at] === 0xff) {
    const marker = head[at + 1]!
    if (marker === SCAN || marker === END) return undefined
    if (marker >= FIRST_FRAME && marker <= LAST_FRAME && !NO_FRAMES.has(marker)) {
      return { width: head.readUInt16BE(at + 7), height: head.readUInt16BE(at + 5) }
    }
    // A marker may follow any number of fill bytes; of all others the length follows, itself among it.
    at += marker === 0xff ? 1 : 2 + Math.max(2, head.readUInt16BE(at + 2))
  }
  return undefined
}
