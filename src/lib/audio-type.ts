/** Recognizes audio by its first bytes. */

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

/** Bytes of the head that identify the type. */
export const AUDIO_HEAD = 64

/** The type by magic bytes; undefined when none matches: providers accept more types than these. */
export function audioType(head: Buffer): AudioType | undefined {
  const text = head.toString('latin1', 0, 12)
  const found = SIGNS.find(([sign]) => sign.test(text))
  return found && { extension: found[1], contentType: found[2] }
}
