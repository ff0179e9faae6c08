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

/**
 * Messages whose model turns hold their media in `images`, as answers do: hardly any wire takes those among the model's
 * words, and the next turn must not fail for them.
 */
export const withMediaAside = (messages: Message[]): Message[] =>
  messages.some(hasMedia) ? messages.map(message => (hasMedia(message) ? mediaAside(message) : message)) : messages

const isMedia = ({ type }: ContentPart): boolean => type !== 'text' && type !== 'refusal'
const hasMedia = ({ role, content }: Message): boolean =>
  role === 'assistant' && Array.isArray(content) && content.some(isMedia)

function mediaAside(message: Message & { images?: unknown }): Message {
  const parts = message.content as ContentPart[]
  const shown = Array.isArray(message.images) ? message.images : []
  const images = [...parts.filter(isMedia), ...shown]
  return Object.assign({}, message, { content: compact(parts.filter(part => !isMedia(part))), images })
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
/** Subtypes of `audio/` that chat requests may use. */
export const audioSubtypes = Object.keys(FORMATS)

/** Undefined for a media type of no format that chat requests know. */
export function audioFormatOf(mediaType: string): AudioFormat | undefined {
  const subtype = /^audio\/([^;\s]+)/i.exec(mediaType)?.[1]?.toLowerCase()
  return subtype !== undefined && Object.hasOwn(FORMATS, subtype) ? FORMATS[subtype] : undefined
}
