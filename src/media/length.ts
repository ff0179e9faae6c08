/** How long audio and video last: by what a file says of itself, else by its size. */
import type { Container } from './reader.ts'
import { type MediaBudget, type MediaFile, spend } from './source.ts'

/** The longest and the shortest that a file of a size can be: silence in FLAC, and stereo of 192 kHz with 32 bits. */
const BYTES_PER_SECOND = { least: 25, most: 1_536_000 }

const HEAD_BYTES = 512
const TAIL_BYTES = 64 * 1024
const ID3_HEAD_BYTES = 10
/** Work for the heads of a file, beside what the library reads. */
const FILE_WORK = 100

/** Tests of a head as Latin-1 text. */
const CONTAINERS: readonly (readonly [sign: RegExp, container: Container])[] = [
  [/^RIFF.{4}WAVE/s, 'audio/wav'],
  [/^fLaC/, 'audio/flac'],
  [/^FORM.{4}AIF[FC]/s, 'audio/aiff'],
  [/^.{4}ftyp/s, 'audio/mp4'],
  [/^.E\xdf\xa3/s, 'video/webm'],
  [/^\xff[\xe2-\xff]/, 'audio/mpeg'],
]

/**
 * Seconds of WAV, FLAC, AIFF, MP3, AAC, Ogg, MP4 and WebM, never more or less than the size allows. Undefined where the file
 * does not say it, or reading it would take too long.
 */
export async function mediaSeconds(file: MediaFile, budget: MediaBudget): Promise<number | undefined> {
  if (!spend(budget, FILE_WORK)) return undefined
  const start = afterTag(file.read(0, ID3_HEAD_BYTES))
  const size = file.size - start
  const head = file.read(start, HEAD_BYTES)
  const found =
    head.toString('latin1', 0, 4) === 'OggS' ? oggSeconds(head, file) : await said(file, start, head, budget)
  if (found === undefined || !Number.isFinite(found) || found <= 0) return undefined
  return Math.min(Math.max(found, size / BYTES_PER_SECOND.most), size / BYTES_PER_SECOND.least)
}

async function said(file: MediaFile, start: number, head: Buffer, budget: MediaBudget): Promise<number | undefined> {
  const text = head.toString('latin1', 0, 12)
  const container = CONTAINERS.find(([sign]) => sign.test(text))?.[1]
  if (container === undefined) return undefined
  const { readingOf } = await import('./reader.ts')
  const { duration, bitrate } = await readingOf(file, start, container, budget)
  // Frames of MP3 and AAC say their rate alone.
  const byRate = container === 'audio/mpeg' && bitrate ? ((file.size - start) * 8) / bitrate : undefined
  return duration ?? byRate
}

/** Where the audio begins: behind a tag of ID3v2, whose length has 7 bits a byte (id3.org/id3v2.4.0-structure section 3.1). */
function afterTag(head: Buffer): number {
  if (head.length < ID3_HEAD_BYTES || head.toString('latin1', 0, 3) !== 'ID3') return 0
  const footer = head[5]! & 0x10 ? ID3_HEAD_BYTES : 0
  return ID3_HEAD_BYTES + footer + head.subarray(6).reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0)
}

/** Reads the position of the last page (RFC 3533 section 6). The library would read every page. */
function oggSeconds(head: Buffer, file: MediaFile): number | undefined {
  const tail = file.read(Math.max(0, file.size - TAIL_BYTES), TAIL_BYTES)
  const page = tail.lastIndexOf('OggS')
  const vorbis = head.indexOf('\x01vorbis', 0, 'latin1')
  if (page < 0 || page + 14 > tail.length || (vorbis >= 0 && vorbis + 16 > head.length)) return undefined
  // Opus counts at this rate, whatever it was made of (RFC 7845 section 4).
  const rate = head.includes('OpusHead') ? 48_000 : vorbis < 0 ? undefined : head.readUInt32LE(vorbis + 12)
  return rate && Number(tail.readBigInt64LE(page + 6)) / rate
}

/** Usual bytes of a second by media type; of samples, 16 bits at 24,000 a second. */
const RATES: readonly (readonly [type: RegExp, bytesPerSecond: number])[] = [
  [/wav|pcm|l16/i, 48_000],
  [/flac/i, 24_000],
  [/opus|ogg/i, 4_000],
  [/aac/i, 8_000],
]
/** MP3, and what is not known. */
const USUAL_RATE = 16_000

/** Usual bytes of a second of speech that comes as `contentType`. */
export const usualBytesPerSecond = (contentType: string): number =>
  RATES.find(([type]) => type.test(contentType))?.[1] ?? USUAL_RATE
