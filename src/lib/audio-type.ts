/** Recognizes audio by its first bytes, and reads its length where the head of the file gives it. */

/** A container of audio: the extension of its files, and its media type. */
interface AudioType {
  readonly extension: string
  readonly contentType: string
}

const SIGNS: readonly (readonly [RegExp, string, string])[] = [
  [/^RIFF.{4}WAVE/s, 'wav', 'audio/wav'],
  [/^fLaC/, 'flac', 'audio/flac'],
  [/^OggS/, 'ogg', 'audio/ogg'],
  [/^ID3|^\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff]/, 'mp3', 'audio/mpeg'],
  [/^.{4}ftyp/s, 'm4a', 'audio/mp4'],
  [/^.E\xdf\xa3/s, 'webm', 'audio/webm'],
]

const MPEG = { extension: 'mp3', contentType: 'audio/mpeg' }
const MP4 = { extension: 'm4a', contentType: 'audio/mp4' }
const OGG = { extension: 'ogg', contentType: 'audio/ogg' }

/** By file extension, which is sent on unchanged. */
const BY_EXTENSION = new Map<string, string>([
  ['mp3', 'audio/mpeg'],
  ['mpga', 'audio/mpeg'],
  ['mpeg', 'audio/mpeg'],
  ['m4a', 'audio/mp4'],
  ['mp4', 'audio/mp4'],
  ['ogg', 'audio/ogg'],
  ['oga', 'audio/ogg'],
  ['opus', 'audio/ogg'],
  ['wav', 'audio/wav'],
  ['flac', 'audio/flac'],
  ['webm', 'audio/webm'],
  ['aac', 'audio/aac'],
  ['amr', 'audio/amr'],
])

/** Media types as clients write them, by their usual variants. */
const BY_CONTENT_TYPE = new Map<string, AudioType>([
  ['audio/mpeg', MPEG],
  ['audio/mp3', MPEG],
  ['audio/mp4', MP4],
  ['audio/m4a', MP4],
  ['audio/x-m4a', MP4],
  ['video/mp4', { extension: 'mp4', contentType: 'video/mp4' }],
  ['audio/ogg', OGG],
  ['audio/opus', OGG],
  ['audio/wav', { extension: 'wav', contentType: 'audio/wav' }],
  ['audio/wave', { extension: 'wav', contentType: 'audio/wav' }],
  ['audio/x-wav', { extension: 'wav', contentType: 'audio/wav' }],
  ['audio/flac', { extension: 'flac', contentType: 'audio/flac' }],
  ['audio/x-flac', { extension: 'flac', contentType: 'audio/flac' }],
  ['audio/webm', { extension: 'webm', contentType: 'audio/webm' }],
  ['video/webm', { extension: 'webm', contentType: 'video/webm' }],
  ['audio/aac', { extension: 'aac', contentType: 'audio/aac' }],
  ['audio/amr', { extension: 'amr', contentType: 'audio/amr' }],
])

/**
 * The type under which a file is sent to a provider (docs/contract.md#forms): by its first bytes, else by the
 * `extension` of its name, else by the `contentType` of its part; both are '' when absent. MP3 when nothing identifies
 * it.
 */
export function fileTypeOf(head: Buffer, extension: string, contentType: string): AudioType {
  const proven = audioType(head)
  if (proven) return proven
  if (extension !== '') return { extension, contentType: BY_EXTENSION.get(extension) ?? (contentType || UNTYPED) }
  return BY_CONTENT_TYPE.get(contentType) ?? { extension: 'mp3', contentType: contentType || UNTYPED }
}
const UNTYPED = 'application/octet-stream'

/** Bytes of the head that identify the type and, for most files, the length. */
export const AUDIO_HEAD = 4096

/** The type by magic bytes; undefined when none matches: providers accept more types than these. */
export function audioType(head: Buffer): AudioType | undefined {
  const text = head.toString('latin1', 0, 12)
  const found = SIGNS.find(([sign]) => sign.test(text))
  return found && { extension: found[1], contentType: found[2] }
}

/** Of the largest files that are likely: 192,000 samples a second, of 32 bits, in stereo. */
const MOST_BYTES_PER_SECOND = 1_536_000

/**
 * Seconds of a WAV or FLAC file of `size` bytes; undefined for other types and for heads without a length. Its client has
 * written the head: whatever stands there, the file is no shorter than its size allows.
 */
export function audioSeconds(head: Buffer, size: number): number | undefined {
  const text = head.toString('latin1', 0, 12)
  let seconds: number | undefined
  if (/^RIFF.{4}WAVE/s.test(text)) seconds = wavSeconds(head, size)
  else if (text.startsWith('fLaC')) seconds = flacSeconds(head)
  return seconds === undefined ? undefined : Math.max(seconds, size / MOST_BYTES_PER_SECOND)
}

/** All behind the head of the first data: its length is unknown in a streamed file, and other data may follow it. */
function wavSeconds(head: Buffer, size: number): number | undefined {
  let slowest: number | undefined
  for (let at = 12; at + 8 <= head.length; ) {
    const name = head.toString('latin1', at, at + 4)
    const length = head.readUInt32LE(at + 4)
    if (name === 'fmt ' && at + 24 <= head.length) slowest = Math.min(slowest ?? Infinity, plainRate(head, at + 8))
    if (name === 'data') return slowest ? (size - at - 8) / slowest : undefined
    at += 8 + length + (length % 2)
  }
  return undefined
}

/** Tags of samples that are not compressed: whole numbers, floats, A-law and mu-law. */
const PLAIN_FORMATS = new Set([1, 3, 6, 7])
/** The tag stands at the end of the format. */
const EXTENSIBLE = 0xfffe

/** Bytes a second of the samples of a WAVEFORMATEX; 0 for compressed ones. Decoders do not read its own byte rate. */
function plainRate(head: Buffer, at: number): number {
  let tag = head.readUInt16LE(at)
  if (tag === EXTENSIBLE && at + 26 <= head.length) tag = head.readUInt16LE(at + 24)
  if (!PLAIN_FORMATS.has(tag)) return 0
  const [channels, rate, bits] = [head.readUInt16LE(at + 2), head.readUInt32LE(at + 4), head.readUInt16LE(at + 14)]
  return rate * channels * Math.ceil(bits / 8)
}

/** STREAMINFO is the first block (RFC 9639 section 8.2): 20 bits of sample rate, 36 bits of sample count. */
function flacSeconds(head: Buffer): number | undefined {
  if (head.length < 26) return undefined
  const rate = head.readUIntBE(18, 3) >> 4
  const samples = (head[21]! & 0x0f) * 2 ** 32 + head.readUInt32BE(22)
  return rate > 0 && samples > 0 ? samples / rate : undefined
}
