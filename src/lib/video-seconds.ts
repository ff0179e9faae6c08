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

/** Boxes beside the movie and its fragments in which decoders find neither. */
const BESIDE = new Set(['ftyp', 'styp', 'sidx', 'ssix', 'prft', 'emsg', 'mdat', 'free', 'skip', 'mfra', 'uuid'])

/**
 * The same of a file of any size, by its box `moov`, and by the fragments behind it where there may be some; at least as long as
 * the frames of its sound. Undefined where there is no such box, or it says no length, for files of compact tables, which may
 * have more, for fragments that may stand elsewhere, and beyond the budget.
 */
export function movieSeconds(reader: ByteReader, budget: Budget): number | undefined {
  let fragments: Fragments | undefined
  let isPlain = true
  while (budget.steps-- > 0) {
    const head = reader.take(BOX_HEAD)
    if (head.length < BOX_HEAD) return fragments?.seconds
    const short = head.readUInt32BE(0)
    const large = short === LARGE ? reader.take(BOX_HEAD) : undefined
    if (large && large.length < BOX_HEAD) return undefined
    const size = large ? Number(large.readBigUInt64BE(0)) - 2 * BOX_HEAD : short - BOX_HEAD
    const name = head.toString('latin1', 4, 8)
    if (name === 'moov' || name === 'moof') {
      const most = budget.steps * BYTES_PER_STEP
      if (size > most) return undefined
      const bytes = reader.take(short === TO_END ? most + 1 : Math.max(size, 0))
      if (name === 'moof') {
        if (!fragments?.add(bytes, budget)) return undefined
        continue
      }
      const tracks = fragments ? undefined : tracksIn(bytes, budget)
      if (!tracks || tracks.isPart) return undefined
      if (!tracks.isFragmented) return Math.max(tracks.seconds, tracks.frames * LEAST_FRAME) || undefined
      fragments = new Fragments(tracks)
    } else {
      isPlain &&= BESIDE.has(name)
      if (short === TO_END || size < 0 || !reader.skip(size))
        return size < 0 && short !== TO_END ? undefined : fragments?.seconds
    }
    if (fragments && !isPlain) return undefined
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
  /** Fragments may follow. */
  readonly isFragmented: boolean
  /** By the ids of tracks: ticks of a second, and of a sample of a fragment that says none. */
  readonly scales: ReadonlyMap<number, number>
  readonly ticks: ReadonlyMap<number, number>
}

/** Boxes that say how long the video, or one of its tracks, is; of its id; of its handler; of frames; and of fragments. */
const NAMES = new LetterNames('mvhd', 'mdhd', 'tkhd', 'hdlr', 'stsz', 'stz2', 'mvex', 'trex', 'trun')

/** Undefined beyond the budget. */
function tracksIn(bytes: Buffer, budget: Budget): Tracks | undefined {
  const cost = Math.ceil(bytes.length / BYTES_PER_STEP)
  if (cost > budget.steps) return undefined
  budget.steps -= cost
  let seconds = 0
  let frames = 0
  let isPart = false
  let isFragmented = false
  let isSound = false
  let track = 0
  const scales = new Map<number, number>()
  const ticks = new Map<number, number>()
  // A name may begin in what looks like another: the size of its box.
  for (let at = NAMES.next(bytes); at >= 0; at = NAMES.next(bytes, at + 1)) {
    if (budget.steps-- <= 0) return undefined
    const from = at + 4
    switch (bytes.toString('latin1', at, from)) {
      case 'hdlr':
        isSound = bytes.toString('latin1', at + 12, at + 16) === 'soun'
        break
      case 'stsz':
        frames = Math.max(frames, isSound ? framesAt(bytes, from) : 0)
        break
      case 'tkhd':
        track = numberAt(bytes, from + (bytes[from] === 1 ? 20 : 12))
        break
      case 'trex':
        ticks.set(numberAt(bytes, from + 4), numberAt(bytes, from + 12))
        break
      case 'stz2':
      case 'trun':
        isPart = true
        break
      case 'mvex':
        isFragmented = true
        break
      case 'mdhd':
        scales.set(track, numberAt(bytes, from + (bytes[from] === 1 ? 20 : 12)))
        seconds = Math.max(seconds, secondsAt(bytes, from))
        break
      default:
        seconds = Math.max(seconds, secondsAt(bytes, from))
    }
  }
  return { seconds, frames, isPart, isFragmented, scales, ticks }
}

/** 0 behind the end. */
const numberAt = (bytes: Buffer, at: number): number => (at + 4 <= bytes.length ? bytes.readUInt32BE(at) : 0)

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

/** Boxes of a fragment: of a track in it, and of samples of that. */
const FRAGMENT_NAMES = new LetterNames('tfhd', 'trun')
/** Of a sample that says how long it is. */
const SAMPLE_STEP = 1 / 8
/** Flags of these boxes (ISO 14496-12 sections 8.8.7 and 8.8.8), and bytes of what they say is there. */
const TRACK_OFFSET = 0x1
const TRACK_DESCRIPTION = 0x2
const TRACK_DURATION = 0x8
const RUN_OFFSET = 0x1
const RUN_FIRST_FLAGS = 0x4
const SAMPLE_DURATION = 0x100
const SAMPLE_FIELDS = [SAMPLE_DURATION, 0x200, 0x400, 0x800]

/** A track in fragments. */
interface FragmentedTrack {
  ticks: number
  samples: number
}

/** All fragments of a file. */
class Fragments {
  readonly #movie: Tracks
  readonly #tracks = new Map<number, FragmentedTrack>()

  constructor(movie: Tracks) {
    this.#movie = movie
  }

  /** False beyond the budget, and where a fragment is of no track, or cut. */
  add(bytes: Buffer, budget: Budget): boolean {
    budget.steps -= Math.ceil(bytes.length / BYTES_PER_STEP)
    let track: FragmentedTrack | undefined
    let usual = 0
    for (let at = FRAGMENT_NAMES.next(bytes); at >= 0; at = FRAGMENT_NAMES.next(bytes, at + 1)) {
      if (budget.steps-- <= 0) return false
      const from = at + 4
      const flags = numberAt(bytes, from) & 0xff_ffff
      if (bytes[at + 1] === F) {
        const id = numberAt(bytes, from + 4)
        const skipped = (flags & TRACK_OFFSET ? 8 : 0) + (flags & TRACK_DESCRIPTION ? 4 : 0)
        usual = flags & TRACK_DURATION ? numberAt(bytes, from + 8 + skipped) : (this.#movie.ticks.get(id) ?? 0)
        track = this.#track(id)
      } else if (!track || !addRun(track, bytes, from, flags, usual, budget)) return false
    }
    return true
  }

  #track(id: number): FragmentedTrack | undefined {
    if (!this.#movie.scales.get(id)) return undefined
    let track = this.#tracks.get(id)
    if (!track) {
      track = { ticks: 0, samples: 0 }
      this.#tracks.set(id, track)
    }
    return track
  }

  /** Of the longest track, with what stands before all fragments. */
  get seconds(): number | undefined {
    let seconds = 0
    let samples = 0
    for (const [id, track] of this.#tracks) {
      seconds = Math.max(seconds, track.ticks / this.#movie.scales.get(id)!)
      samples = Math.max(samples, track.samples)
    }
    const { frames, seconds: said } = this.#movie
    // Without frames of its own, a movie may say the length of its fragments.
    const all = frames > 0 ? said + seconds : Math.max(said, seconds)
    return Math.max(all, (frames + samples) * LEAST_FRAME) || undefined
  }
}
const F = 'f'.charCodeAt(0)

function addRun(
  track: FragmentedTrack,
  bytes: Buffer,
  from: number,
  flags: number,
  usual: number,
  budget: Budget,
): boolean {
  const samples = numberAt(bytes, from + 4)
  track.samples += samples
  if ((flags & SAMPLE_DURATION) === 0) {
    track.ticks += samples * usual
    return true
  }
  const first = from + 8 + (flags & RUN_OFFSET ? 4 : 0) + (flags & RUN_FIRST_FLAGS ? 4 : 0)
  const step = 4 * SAMPLE_FIELDS.filter(field => (flags & field) !== 0).length
  const end = first + samples * step
  budget.steps -= samples * SAMPLE_STEP
  if (end > bytes.length || budget.steps <= 0) return false
  for (let at = first; at < end; at += step) track.ticks += bytes.readUInt32BE(at)
  return true
}
