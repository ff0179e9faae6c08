/** The length of an ISO base media file (ISO 14496-12 sections 8.2.2 and 8.4.2), such as MP4, M4A and QuickTime. */
import type { ByteReader } from './byte-reader.ts'

/** Boxes that say how long the video, or one of its tracks, is. */
const HEADS = ['mvhd', 'mdhd']
const MAX_PLACES = 256

/** True for a file that begins with the type of such a file. */
export const isVideo = (head: Buffer): boolean => head.toString('latin1', 4, 8) === 'ftyp'

/** Seconds of what lasts longest; 0 where nothing says it. */
export function videoSeconds(bytes: Buffer): number {
  let most = 0
  for (const head of HEADS) {
    let at = bytes.indexOf(head)
    for (let places = 0; at >= 0 && places < MAX_PLACES; places++) {
      most = Math.max(most, secondsAt(bytes, at + head.length))
      at = bytes.indexOf(head, at + head.length)
    }
  }
  return most
}

const BOX_HEAD = 8
/** Sizes of a box that goes to the end of the file, and of one whose size stands behind its name. */
const TO_END = 0
const LARGE = 1
const MAX_BOXES = 4096
/** Of the box that describes the tracks: ten hours of the smallest frames. */
const MAX_MOVIE = 16 * 1024 * 1024
/** Of a frame of AAC at the highest rate; those of other codecs last longer. */
const LEAST_FRAME = 1024 / 96_000

/**
 * The same of a file of any size, by its box `moov` alone; at least as long as the frames of its sound. Undefined where
 * there is none, or it says no length, and for files of fragments and of compact tables, which may have more.
 */
export function movieSeconds(reader: ByteReader): number | undefined {
  for (let boxes = 0; boxes < MAX_BOXES; boxes++) {
    const head = reader.take(BOX_HEAD)
    if (head.length < BOX_HEAD) return undefined
    const short = head.readUInt32BE(0)
    const large = short === LARGE ? reader.take(BOX_HEAD) : undefined
    if (large && large.length < BOX_HEAD) return undefined
    const size = large ? Number(large.readBigUInt64BE(0)) - 2 * BOX_HEAD : short - BOX_HEAD
    if (head.toString('latin1', 4, 8) === 'moov') {
      const movie = reader.take(short === TO_END ? MAX_MOVIE : Math.min(Math.max(size, 0), MAX_MOVIE))
      if (movie.includes('mvex') || movie.includes('stz2')) return undefined
      return Math.max(videoSeconds(movie), framesIn(movie) * LEAST_FRAME) || undefined
    }
    if (size < 0 || !reader.skip(size)) return undefined
  }
  return undefined
}

/**
 * Of the longest track of sound (ISO 14496-12 sections 8.4.3 and 8.7.3.2): behind the name stand version and flags, one size
 * of all frames, and their count. Samples of one size are not compressed, and short.
 */
function framesIn(movie: Buffer): number {
  let most = 0
  for (let at = movie.indexOf('stsz'), places = 0; at >= 0 && places < MAX_PLACES; places++) {
    const handler = movie.lastIndexOf('hdlr', at)
    const isSound = handler >= 0 && movie.toString('latin1', handler + 12, handler + 16) === 'soun'
    if (isSound && at + 16 <= movie.length && movie.readUInt32BE(at + 8) === 0) {
      most = Math.max(most, movie.readUInt32BE(at + 12))
    }
    at = movie.indexOf('stsz', at + 4)
  }
  return most
}

/** Behind the name of a box: its version, flags and two times, and then what is read here. */
function secondsAt(bytes: Buffer, at: number): number {
  if (at + 32 > bytes.length) return 0
  const isLong = bytes[at] === 1
  const from = at + (isLong ? 20 : 12)
  const scale = bytes.readUInt32BE(from)
  const length = isLong ? Number(bytes.readBigUInt64BE(from + 4)) : bytes.readUInt32BE(from + 4)
  // All ones stand for an unknown length.
  const isKnown = scale > 0 && length < (isLong ? 2 ** 63 : 2 ** 32 - 1)
  return isKnown ? length / scale : 0
}
