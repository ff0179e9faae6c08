/** The length of an ISO base media file (ISO 14496-12 sections 8.2.2 and 8.4.2), such as MP4, M4A and QuickTime. */
import type { ByteReader } from './byte-reader.ts'
import { LetterNames } from './letter-names.ts'

/** What may still be looked at in the files of a request. */
interface Budget {
  steps: number
}
/** Of what is searched; a box and a name take a step each. */
const BYTES_PER_STEP = 32

/** True for a file that begins with the type of such a file. */
export const isVideo = (head: Buffer): boolean => head.toString('latin1', 4, 8) === 'ftyp'

/** Seconds of what lasts longest; 0 where nothing says it, and beyond the budget. */
export const videoSeconds = (bytes: Buffer, budget: Budget): number => tracksIn(bytes, budget)?.seconds ?? 0

const BOX_HEAD = 8
/** Sizes of a box that goes to the end of the file, and of one whose size stands behind its name. */
const TO_END = 0
const LARGE = 1
/** Of a frame of AAC at the highest rate; those of other codecs last longer. */
const LEAST_FRAME = 1024 / 96_000

/**
 * The same of a file of any size, by its box `moov` alone; at least as long as the frames of its sound. Undefined where
 * there is none, or it says no length, for files of fragments and of compact tables, which may have more, and beyond the
 * budget.
 */
export function movieSeconds(reader: ByteReader, budget: Budget): number | undefined {
  while (budget.steps-- > 0) {
    const head = reader.take(BOX_HEAD)
    if (head.length < BOX_HEAD) return undefined
    const short = head.readUInt32BE(0)
    const large = short === LARGE ? reader.take(BOX_HEAD) : undefined
    if (large && large.length < BOX_HEAD) return undefined
    const size = large ? Number(large.readBigUInt64BE(0)) - 2 * BOX_HEAD : short - BOX_HEAD
    if (head.toString('latin1', 4, 8) === 'moov') {
      const most = budget.steps * BYTES_PER_STEP
      if (size > most) return undefined
      const tracks = tracksIn(reader.take(short === TO_END ? most + 1 : Math.max(size, 0)), budget)
      return tracks && !tracks.isPart ? Math.max(tracks.seconds, tracks.frames * LEAST_FRAME) || undefined : undefined
    }
    if (size < 0 || !reader.skip(size)) return undefined
  }
  return undefined
}

/** What boxes say of the longest track. */
interface Tracks {
  readonly seconds: number
  /** Of sound. */
  readonly frames: number
  /** Frames may stand elsewhere, or in another form. */
  readonly isPart: boolean
}

/** Boxes that say how long the video, or one of its tracks, is; of its handler; of frames; and of fragments. */
const NAMES = new LetterNames('mvhd', 'mdhd', 'hdlr', 'stsz', 'stz2', 'mvex')

/** Undefined beyond the budget. */
function tracksIn(bytes: Buffer, budget: Budget): Tracks | undefined {
  const cost = Math.ceil(bytes.length / BYTES_PER_STEP)
  if (cost > budget.steps) return undefined
  budget.steps -= cost
  let seconds = 0
  let frames = 0
  let isPart = false
  let isSound = false
  // A name may begin in what looks like another: the size of its box.
  for (let at = NAMES.next(bytes); at >= 0; at = NAMES.next(bytes, at + 1)) {
    if (budget.steps-- <= 0) return undefined
    const name = bytes.toString('latin1', at, at + 4)
    if (name === 'hdlr') isSound = bytes.toString('latin1', at + 12, at + 16) === 'soun'
    else if (name === 'stsz') frames = Math.max(frames, isSound ? framesAt(bytes, at + 4) : 0)
    else if (name === 'stz2' || name === 'mvex') isPart = true
    else seconds = Math.max(seconds, secondsAt(bytes, at + 4))
  }
  return { seconds, frames, isPart }
}

/**
 * ISO 14496-12 sections 8.4.3 and 8.7.3.2: behind the name stand version and flags, one size of all frames, and their count.
 * Samples of one size are not compressed, and short.
 */
const framesAt = (bytes: Buffer, at: number): number =>
  at + 12 <= bytes.length && bytes.readUInt32BE(at + 4) === 0 ? bytes.readUInt32BE(at + 8) : 0

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
