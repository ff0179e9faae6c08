/** How long the audio of a file lasts. */
import { isAdts } from './audio-frame.ts'
import { ByteReader } from './byte-reader.ts'
import { flacLength } from './flac-seconds.ts'
import { framesLength } from './frame-seconds.ts'
import { id3Bytes, isId3 } from './frame-tags.ts'
import { oggLength } from './ogg-seconds.ts'
import { type Around, beginsOther, holdsOther } from './other-streams.ts'
import { isVideo, movieSeconds } from './video-seconds.ts'
import { wavSeconds } from './wav-seconds.ts'
import { isWebm, webmSeconds } from './webm-seconds.ts'

/** A file, in the pieces that it came in; `size` is in bytes. */
export interface AudioFile {
  readonly pieces: Iterable<Buffer>
  readonly size: number
}

export interface AudioLength {
  readonly seconds: number
  /** By what decoders play, of which it is no less; else by a head, which the file's client has written. */
  readonly counted: boolean
}

/** Frames and packets that are counted, and boxes and bytes that are searched. */
export interface AudioBudget {
  steps: number
}
/** Of one request: an hour and more, counted within some tens of milliseconds. */
export const AUDIO_BUDGET: Readonly<AudioBudget> = { steps: 250_000 }

/** Of silence, in the files that take least for it. */
export const LEAST_BYTES_PER_SECOND = 25
/** Of the largest files that are likely: 192,000 samples a second, of 32 bits, in stereo. */
const MOST_BYTES_PER_SECOND = 1_536_000
/** What says of which type a file is, and holds the format of FLAC. */
const HEAD = 512
/** Tags that may stand before the audio. */
const MAX_TAGS = 16
const TAG_HEAD = 10

/**
 * Undefined for other types than WAV, FLAC, MP3, AAC, Opus in Ogg and WebM, Vorbis and MP4, and for heads without a length.
 * Whatever stands in a head, the file is no shorter than its size allows.
 */
export function audioLength({ pieces, size }: AudioFile, budget = { ...AUDIO_BUDGET }): AudioLength | undefined {
  const { start, tags } = behindTags(pieces)
  const left = size - start
  const reader = () => {
    const from = new ByteReader(pieces)
    from.skip(start)
    return from
  }
  const head = reader().take(HEAD)
  const text = head.toString('latin1', 0, 12)
  const found = (counted: boolean, seconds: number | undefined): AudioLength | undefined =>
    Number.isFinite(seconds) ? { counted, seconds: Math.max(seconds!, left / MOST_BYTES_PER_SECOND) } : undefined
  const isOther = (around: Around, proven: number): boolean => {
    const most = probed(start, tags, proven)
    return (
      beginsOther(reader().take(Math.max(most - start, LEAST_PROBED)), around) ||
      holdsOther(new ByteReader(pieces).take(most), around, budget)
    )
  }
  if (/^RIFF.{4}WAVE/s.test(text)) {
    const seconds = wavSeconds(left, reader, budget)
    const isKnown = seconds !== undefined && !isOther('samples', HEAD)
    return found(true, isKnown ? seconds : undefined)
  }
  if (text.startsWith('fLaC')) {
    const length = flacLength(head, pieces, start, budget)
    return found(length?.counted === true && !isOther('mpeg', HEAD), length?.seconds)
  }
  if (text.startsWith('OggS')) {
    const length = oggLength(reader(), left, budget)
    return length && found(length.counted, length.seconds)
  }
  if (isWebm(head)) return found(true, webmSeconds(reader, left, budget))
  if (isVideo(head)) return found(false, movieSeconds(reader(), budget))
  const frames = framesLength(reader(), left, budget)
  const isKnown = frames && !isOther(isAdts(head) ? 'adts' : 'mpeg', frames.proven)
  return found(true, isKnown ? frames.seconds : undefined)
}

/** Of a file, what decoders look at for its type at first, and at most. */
const LEAST_PROBED = 2048
const MOST_PROBED = 1024 * 1024
/**
 * What they look at where the type is proven `proven` bytes behind `tags`: twice as much each time, until it is. They step over
 * one tag.
 */
function probed(start: number, tags: number, proven: number): number {
  if (tags > 1) return MOST_PROBED
  return Math.min(Math.max(LEAST_PROBED, 2 ** Math.ceil(Math.log2(start + proven))), MOST_PROBED)
}

/** Bytes of the ID3v2 tags at the begin, behind which decoders look for audio of any type. */
function behindTags(pieces: Iterable<Buffer>): { start: number; tags: number } {
  const reader = new ByteReader(pieces)
  let start = 0
  let tags = 0
  for (; tags < MAX_TAGS; tags++) {
    const head = reader.take(TAG_HEAD)
    const isTag = head.length === TAG_HEAD && isId3(head.readUInt32BE(0))
    const bytes = isTag ? id3Bytes(head.readUInt16BE(3), head[5]!, head.readUInt32BE(6)) : undefined
    if (bytes === undefined) break
    start += bytes
    if (!reader.skip(bytes - TAG_HEAD)) break
  }
  return { start, tags }
}
