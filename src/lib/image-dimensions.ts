/** Reads width and height from the first bytes of an image: PNG, JPEG, WebP and GIF. */

/** In pixels. */
export interface Dimensions {
  readonly width: number
  readonly height: number
}

/** Bytes of a head that may say so. */
export const DIMENSIONS_HEAD = 33
/** Chunks and segments that are passed over. */
const MAX_PARTS = 256
/** Bytes to look through, one number after the other: metadata may stand before the pixels. */
export const DIMENSIONS_HEADS = [4 * 1024, 64 * 1024] as const

/**
 * Undefined where decoders might read another size: odd parts before the pixels are read one way by some and otherwise by
 * others.
 */
export function imageDimensions(head: Buffer): Dimensions | undefined {
  const size = pngHeader(head)
    ? isPlainPng(head)
      ? pngHeader(head)
      : undefined
    : (webp(head) ?? jpeg(head) ?? gif(head))
  return size && size.width > 0 && size.height > 0 ? size : undefined
}

const signOf = (head: Buffer, from: number, length: number): string => head.toString('latin1', from, from + length)

/** The header chunk is the first one (PNG specification, section 5.6). */
export const pngHeader = (head: Buffer): Dimensions | undefined =>
  head.length >= DIMENSIONS_HEAD && signOf(head, 0, 8) === '\x89PNG\r\n\x1a\n' && signOf(head, 12, 4) === 'IHDR'
    ? { width: head.readUInt32BE(16), height: head.readUInt32BE(20) }
    : undefined

const IHDR = 0x49484452
const IDAT = 0x49444154

/** Whether the pixels begin behind one header chunk: of several, some decoders take the last. */
function isPlainPng(head: Buffer): boolean {
  let at = DIMENSIONS_HEAD
  for (let parts = 0; parts < MAX_PARTS && at + 8 <= head.length; parts++) {
    const type = head.readUInt32BE(at + 4)
    if (type === IDAT) return true
    if (type === IHDR) return false
    // The length of a chunk counts neither itself, nor its type and checksum.
    at += head.readUInt32BE(at) + 12
  }
  return false
}

/** Lossy, lossless, extended (RFC 9649, sections 2.5 to 2.7). */
function webp(head: Buffer): Dimensions | undefined {
  if (head.length < DIMENSIONS_HEAD || signOf(head, 0, 4) !== 'RIFF' || signOf(head, 8, 4) !== 'WEBP') return undefined
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

/** Of ITU-T T.81, table B.1: the start of an image and of its frame, tables, application segments and comments. */
const SOI = 0xffd8
const FRAMES = new Set([0xc0, 0xc1, 0xc2])
const SEGMENTS = new Set([0xc4, 0xdb, 0xdd, 0xfe, ...Array.from({ length: 16 }, (_, n) => 0xe0 + n)])

/** Of the first frame header; segments before it are passed over by their lengths. */
function jpeg(head: Buffer): Dimensions | undefined {
  if (head.length < 2 || head.readUInt16BE(0) !== SOI) return undefined
  let at = 2
  for (let parts = 0; parts < MAX_PARTS && at + 9 <= head.length && head[at] === 0xff; parts++) {
    const marker = head[at + 1]!
    if (FRAMES.has(marker)) return { width: head.readUInt16BE(at + 7), height: head.readUInt16BE(at + 5) }
    const length = head.readUInt16BE(at + 2)
    // Of others, and of a length that does not count itself, decoders make what they like.
    if (!SEGMENTS.has(marker) || length < 2) return undefined
    at += 2 + length
  }
  return undefined
}

/** Of the GIF89a specification, sections 18 to 26: the screen and its colours, blocks that are passed over, and a frame. */
const SCREEN = 13
const EXTENSION = 0x21
const FRAME = 0x2c
const FRAME_HEAD = 10

/** Of the screen, or the first frame where it reaches beyond it: decoders take either. */
function gif(head: Buffer): Dimensions | undefined {
  if (head.length < SCREEN || !/^GIF8[79]a$/.test(signOf(head, 0, 6))) return undefined
  const colours = head[10]!
  let at = SCREEN + (colours & 0x80 ? 3 * 2 ** ((colours & 7) + 1) : 0)
  let parts = 0
  while (head[at] === EXTENSION) {
    at += 2
    // Blocks up to one without bytes, each behind its length.
    while (at < head.length && head[at] !== 0 && parts < MAX_PARTS) {
      at += head[at]! + 1
      parts++
    }
    at++
    if (parts++ >= MAX_PARTS) return undefined
  }
  if (head[at] !== FRAME || at + FRAME_HEAD > head.length) return undefined
  return {
    width: Math.max(head.readUInt16LE(6), head.readUInt16LE(at + 1) + head.readUInt16LE(at + 5)),
    height: Math.max(head.readUInt16LE(8), head.readUInt16LE(at + 3) + head.readUInt16LE(at + 7)),
  }
}
