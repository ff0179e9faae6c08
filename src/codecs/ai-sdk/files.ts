/** Files of a prompt and of results of tools, in the encodings of all versions. */
import { isObject, type Json, textIn } from '../../core/json.ts'
import type { ContentPart } from '../../core/ops.ts'
import { assertImageUrl } from '../url.ts'
import { optionsIn } from './options.ts'

/** Where a file is: at an address, in base64, by a provider's id, or as text. */
type Source = { url: string } | { base64: string; type?: string } | { id: string } | { text: string }

const DATA_URL = /^data:([^;,]*)(?:;[^,]{0,200})?,/i
const SCHEME = /^[a-z][a-z0-9+.-]*:/i

/** The first bytes of images whose type nobody names, in base64. */
const HEADS: readonly (readonly [string, string])[] = [
  ['iVBOR', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lG', 'image/gif'],
  ['UklG', 'image/webp'],
]

const FORMATS: Readonly<Record<string, string>> = {
  mpeg: 'mp3',
  wave: 'wav',
  'x-wav': 'wav',
  'vnd.wave': 'wav',
  mp4: 'm4a',
  'x-m4a': 'm4a',
  'x-flac': 'flac',
  'x-aac': 'aac',
  'x-aiff': 'aiff',
  L16: 'pcm',
}

/** Undefined for what no part of a chat request can carry. */
export function filePart(file: Json): ContentPart | undefined {
  const source = sourceOf(file.data, textIn(file.originalUrl))
  if (!source) return undefined
  const mediaType = textIn(file.mediaType) ?? ''
  if ('text' in source) return { type: 'text', text: source.text }
  if ('id' in source) return { type: 'file', file: { file_id: source.id } }
  const type = 'base64' in source && source.type ? source.type : mediaType
  if (/^image(?:\/|$)/i.test(type)) return imagePart(source, type, optionsIn(file))
  if (/^audio(?:\/|$)/i.test(type)) return 'base64' in source ? audioPart(source.base64, type) : undefined
  if ('url' in source) assertImageUrl(source.url, 'prompt')
  const file_data = 'url' in source ? source.url : `data:${type || 'application/octet-stream'};base64,${source.base64}`
  const filename = textIn(file.filename)
  return { type: 'file', file: filename === undefined ? { file_data } : { filename, file_data } }
}

function imagePart(source: { url: string } | { base64: string }, type: string, options: Json): ContentPart {
  const { imageDetail } = isObject(options.openai) ? options.openai : {}
  const detail = imageDetail === 'low' || imageDetail === 'high' || imageDetail === 'auto' ? imageDetail : undefined
  const url = 'url' in source ? source.url : `data:${imageType(type, source.base64)};base64,${source.base64}`
  return { type: 'image_url', image_url: detail ? { url, detail } : { url } }
}

const imageType = (type: string, base64: string): string =>
  /^image\/[^*]/i.test(type) ? type : (HEADS.find(([head]) => base64.startsWith(head))?.[1] ?? 'image/png')

function audioPart(data: string, type: string): ContentPart {
  const subtype = /^audio\/([^;]+)/i.exec(type)?.[1]?.toLowerCase() ?? 'wav'
  const format = FORMATS[subtype] ?? subtype
  // The schema of chat requests says which formats there are.
  return { type: 'input_audio', input_audio: { data, format } } as ContentPart
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
  const head = DATA_URL.exec(data.slice(0, 300))
  if (head) return { base64: data.slice(head[0].length), type: head[1]! }
  if (!SCHEME.test(data)) return { base64: data }
  return { url: original !== undefined && !/^https?:/i.test(original) && SCHEME.test(original) ? original : data }
}

/** An id, or ids by provider. */
function idIn(reference: unknown): { id: string } | undefined {
  const id = isObject(reference) ? Object.values(reference).find(one => typeof one === 'string') : reference
  return typeof id === 'string' ? { id } : undefined
}

/** An item of a result's content, in any version's words. */
export function resultPart(item: Json): ContentPart | undefined {
  const { type, mediaType, url, filename } = item
  switch (type) {
    case 'text':
      return { type: 'text', text: textIn(item.text) ?? '' }
    case 'media':
    case 'file-data':
    case 'image-data':
    case 'file':
      return filePart({ data: item.data, mediaType, filename })
    case 'image-url':
      return filePart({ data: url, mediaType: 'image' })
    case 'file-url':
      return filePart({ data: url, mediaType: mediaType ?? 'application/pdf' })
    case 'file-id':
    case 'image-file-id': {
      const found = idIn(item.fileId)
      return found && { type: 'file', file: { file_id: found.id } }
    }
    default:
      return undefined
  }
}
