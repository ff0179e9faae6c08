/** Names the type of an audio file for the providers that transcribe it. */

/** A container of audio: the extension of its files, and its media type. */
interface AudioType {
  readonly extension: string
  readonly contentType: string
}

/** Bytes of the head that identify the type. */
export const AUDIO_HEAD_BYTES = 64

/** Tests of a head as Latin-1 text, and the extension that each proves. */
const SIGNS: readonly (readonly [sign: RegExp, extension: string])[] = [
  [/^RIFF.{4}WAVE/s, 'wav'],
  [/^fLaC/, 'flac'],
  [/^OggS/, 'ogg'],
  [/^ID3|^\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff]/, 'mp3'],
  [/^.{4}ftyp/s, 'm4a'],
  [/^.E\xdf\xa3/s, 'webm'],
]

/** Media types by file extension, which is sent on unchanged. */
const BY_EXTENSION: ReadonlyMap<string, string> = new Map([
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

/** Spellings of clients that are no `audio/` with an extension behind it. */
const SPELLINGS: ReadonlyMap<string, AudioType> = new Map([
  ['audio/mpeg', { extension: 'mp3', contentType: 'audio/mpeg' }],
  ['audio/mp4', { extension: 'm4a', contentType: 'audio/mp4' }],
  ['audio/opus', { extension: 'ogg', contentType: 'audio/ogg' }],
  ['audio/wave', { extension: 'wav', contentType: 'audio/wav' }],
  ['video/mp4', { extension: 'mp4', contentType: 'video/mp4' }],
  ['video/webm', { extension: 'webm', contentType: 'video/webm' }],
])

const UNTYPED = 'application/octet-stream'

/**
 * The type under which a file is sent to a provider (docs/contract.md#forms): by its first bytes, else by the
 * `extension` of its name, else by the `contentType` of its part; both are '' when absent. MP3 when nothing identifies
 * it.
 */
export function fileTypeOf(head: Buffer, extension: string, contentType: string): AudioType {
  const proven = audioType(head)
  if (proven) return proven
  if (extension !== '') return { extension, contentType: BY_EXTENSION.get(extension) ?? (contentType || UNTYPED) }
  return declaredAs(contentType) ?? { extension: 'mp3', contentType: contentType || UNTYPED }
}

function declaredAs(contentType: string): AudioType | undefined {
  const extension = /^audio\/(?:x-)?(\w+)$/.exec(contentType)?.[1] ?? ''
  return SPELLINGS.get(contentType) ?? typeOf(extension)
}

/** The type by magic bytes; undefined when none matches: providers accept more types than these. */
export function audioType(head: Buffer): AudioType | undefined {
  const text = head.toString('latin1', 0, 12)
  return typeOf(SIGNS.find(([sign]) => sign.test(text))?.[1] ?? '')
}

function typeOf(extension: string): AudioType | undefined {
  const contentType = BY_EXTENSION.get(extension)
  return contentType === undefined ? undefined : { extension, contentType }
}
