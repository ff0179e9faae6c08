/** Parts of chat messages, as the codecs of other client wires make them. */
import type { ContentPart, Message } from '../core/chat-request.ts'

type Mark = Extract<ContentPart, { type: 'text' }>['cache_control']
type AudioFormat = Extract<ContentPart, { type: 'input_audio' }>['input_audio']['format']

/** A text part; with `mark`, a cache mark. */
export const textPart = (text: string, mark?: Mark): ContentPart =>
  mark ? { type: 'text', text, cache_control: mark } : { type: 'text', text }

/** Plain text as a string, which every provider accepts. */
export function compact(parts: ContentPart[]): NonNullable<Message['content']> {
  const [first, second] = parts
  if (!first) return ''
  return first.type === 'text' && !second && !first.cache_control ? first.text : parts
}

/** Formats of audio, by the part of its media type behind `audio/`. */
const FORMATS: Readonly<Record<string, AudioFormat>> = {
  wav: 'wav',
  wave: 'wav',
  'x-wav': 'wav',
  'vnd.wave': 'wav',
  mp3: 'mp3',
  mpeg: 'mp3',
  aiff: 'aiff',
  'x-aiff': 'aiff',
  aac: 'aac',
  'x-aac': 'aac',
  ogg: 'ogg',
  flac: 'flac',
  'x-flac': 'flac',
  m4a: 'm4a',
  'x-m4a': 'm4a',
  mp4: 'mp4',
  pcm: 'pcm',
  l16: 'pcm',
  webm: 'webm',
}
/** What may stand after `audio/` in a media type of chat requests. */
export const audioSubtypes = Object.keys(FORMATS)

/** Undefined for a media type of no format that chat requests know. */
export function audioFormatOf(mediaType: string): AudioFormat | undefined {
  const subtype = /^audio\/([^;\s]+)/i.exec(mediaType)?.[1]?.toLowerCase()
  return subtype !== undefined && Object.hasOwn(FORMATS, subtype) ? FORMATS[subtype] : undefined
}
