/** Files of a prompt and of results of tools, in the encodings of all versions. */

import type { ContentPart } from '../../core/chat-request.ts'
import { isObject, type Json, objectIn, textIn } from '../../json/json.ts'
import { audioType } from '../../media/audio-type.ts'
import { isBase64, parseDataUrl } from '../../wire/wire.ts'
import { audioFormatOf, textPart } from '../chat-parts.ts'
import { cacheControlOf, optionsIn } from './options.ts'

/** Where a file is: at an address, in base64, by a provider's id, or as text. */
type Source = { url: string } | { base64: string; type?: string } | { id: string } | { text: string }

const BASE64_URL = /^data:([^;,]*)(?:;[^;,]{0,200})*;base64,/i
const SCHEME = /^[a-z][a-z0-9+.-]{0,30}:/i

/** First bytes of images without a declared type, in base64. */
const HEADS: readonly (readonly [string, string])[] = [
  ['iVBOR', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lG', 'image/gif'],
  ['UklG', 'image/webp'],
]

const AUDIO_NAME = /\.(wav|mp3|aiff|aac|ogg|flac|m4a|webm)(?:[?#]|$)/i

type AudioPart = Extract<ContentPart, { type: 'input_audio' }>
type ImageOrFile = Extract<ContentPart, { type: 'image_url' | 'file' }>
type Located = Extract<Source, { url: string } | { base64: string }>

/** Undefined for what no part of a chat request can carry. */
export function filePart(file: Json): ContentPart | undefined {
  const source = sourceOf(file.data, textIn(file.originalUrl))
  if (!source) return undefined
  const mediaType = textIn(file.mediaType) ?? ''
  if ('text' in source) return { type: 'text', text: source.text }
  if ('id' in source) return { type: 'file', file: { file_id: source.id } }
  const type = 'base64' in source && source.type ? source.type : mediaType
  const control = cacheControlOf(file)
  const part = /^audio(?:\/|$)/i.test(type) ? audioPart(source, type) : mediaPart(source, type, file)
  return control && part.type !== 'input_audio' ? { ...part, cache_control: control } : part
}

function mediaPart(source: Located, type: string, file: Json): ImageOrFile {
  if (/^image(?:\/|$)/i.test(type)) return imagePart(source, type, optionsIn(file))
  const file_data = 'url' in source ? source.url : `data:${type || 'application/octet-stream'};base64,${source.base64}`
  const filename = textIn(file.filename)
  return { type: 'file', file: filename === undefined ? { file_data } : { filename, file_data } }
}

function imagePart(source: Located, type: string, options: Json): ImageOrFile {
  const { imageDetail } = objectIn(options.openai)
  const detail = imageDetail === 'low' || imageDetail === 'high' || imageDetail === 'auto' ? imageDetail : undefined
  const url = 'url' in source ? source.url : `data:${imageType(type, source.base64)};base64,${source.base64}`
  return { type: 'image_url', image_url: detail ? { url, detail } : { url } }
}

const imageType = (type: string, base64: string): string =>
  /^image\/[^*]/i.test(type) ? type : (HEADS.find(([head]) => base64.startsWith(head))?.[1] ?? 'image/png')

/** Takes the audio format from the address, or from the first bytes of the data. */
function audioPart(source: Located, type: string): AudioPart {
  const data = 'url' in source ? source.url : source.base64
  const subtype = /^audio\/([^;*]+)/i.exec(type)?.[1]
  const format = audioFormatOf(type) ?? subtype ?? guessed(source)
  // The schema of chat requests says which formats there are.
  return { type: 'input_audio', input_audio: { data, format } } as AudioPart
}

function guessed(source: Located): string {
  if ('url' in source) return AUDIO_NAME.exec(source.url)?.[1]?.toLowerCase() ?? 'mp3'
  return audioType(Buffer.from(source.base64.slice(0, 64), 'base64'))?.extension ?? 'mp3'
}

function sourceOf(data: unknown, original?: string): Source | undefined {
  if (typeof data === 'string') return ofText(data, original)
  if (!isObject(data)) return undefined
  switch (data.type) {
    case 'data':
      return typeof data.data === 'string' ? { base64: data.data } : undefined
    case 'url':
      return typeof data.url === 'string' ? ofText(data.url, textIn(data.originalUrl)) : undefined
    case 'text':
      return typeof data.text === 'string' ? { text: data.text } : undefined
    case 'reference':
      return idIn(data.reference)
    default:
      return undefined
  }
}

function ofText(data: string, original?: string): Source {
  const head = BASE64_URL.exec(data.slice(0, 300))
  if (head) return { base64: data.slice(head[0].length), type: head[1]! }
  const inline = parseDataUrl(data)
  if (inline) return { base64: inline.base64, type: inline.mime }
  if (isBase64(data)) return { base64: data }
  return { url: original !== undefined && !/^https?:/i.test(original) && SCHEME.test(original) ? original : data }
}

/** An id, or ids by provider. */
function idIn(reference: unknown): { id: string } | undefined {
  const id = isObject(reference) ? Object.values(reference).find(one => typeof one === 'string') : reference
  return typeof id === 'string' ? { id } : undefined
}

/** An item of a result's content, in any version's words. */
export function resultPart(item: Json): ContentPart | undefined {
  const { type, mediaType, url, filename, providerOptions } = item
  switch (type) {
    case 'text':
      return textPart(textIn(item.text) ?? '', cacheControlOf(item))
    case 'media':
    case 'file-data':
    case 'image-data':
    case 'file':
      return filePart({ data: item.data, mediaType, filename, providerOptions })
    case 'image-url':
      return filePart({ data: url, mediaType: 'image', providerOptions })
    case 'file-url':
      return filePart({ data: url, mediaType: mediaType ?? typeAt(url), providerOptions })
    case 'file-id':
    case 'image-file-id': {
      const found = idIn(item.fileId)
      return found && { type: 'file', file: { file_id: found.id } }
    }
    default:
      return undefined
  }
}

/** Guesses the type of an address that is sent without one. */
const typeAt = (url: unknown): string =>
  /\.(?:png|jpe?g|gif|webp)(?:[?#]|$)/i.test(textIn(url) ?? '') ? 'image' : 'application/pdf'
