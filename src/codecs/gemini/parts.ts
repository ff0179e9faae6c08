/** Converts parts of a generateContent body to chat content parts. */
import { errors } from '../../core/error.ts'
import type { ContentPart, Message } from '../../core/ops.ts'
import { assertImageUrl } from '../url.ts'
import type { Part } from './schema.ts'

type Audio = Extract<ContentPart, { type: 'input_audio' }>['input_audio']
type Blob = NonNullable<Part['inlineData']>
type File = NonNullable<Part['fileData']>

/** By the end of the media type. */
const AUDIO: Readonly<Record<string, Audio['format']>> = {
  wav: 'wav',
  wave: 'wav',
  'x-wav': 'wav',
  mp3: 'mp3',
  mpeg: 'mp3',
  aiff: 'aiff',
  aac: 'aac',
  ogg: 'ogg',
  flac: 'flac',
  m4a: 'm4a',
  mp4: 'mp4',
  pcm: 'pcm',
  webm: 'webm',
}

/** `at`: path of the part. Undefined for parts that only their own provider can read. */
export function partOf(part: Part, at: string): ContentPart | undefined {
  if (part.inlineData) return blobPart(part.inlineData, `${at}.inlineData`)
  if (part.fileData) return filePart(part.fileData, `${at}.fileData`)
  return part.text ? { type: 'text', text: part.text } : undefined
}

/** Plain text as a string, which every provider accepts. */
export function compact(parts: ContentPart[]): NonNullable<Message['content']> {
  const [first, second] = parts
  if (!first) return ''
  return first.type === 'text' && !second ? first.text : parts
}

/** Clients use either alphabet of RFC 4648. */
const standard = (data: string): string => (/[-_]/.test(data) ? data.replaceAll('-', '+').replaceAll('_', '/') : data)

function blobPart({ mimeType, data }: Blob, at: string): ContentPart {
  const mime = mimeType.toLowerCase()
  const base64 = standard(data)
  if (mime.startsWith('image/')) {
    const url = `data:${mime};base64,${base64}`
    assertImageUrl(url, at)
    return { type: 'image_url', image_url: { url } }
  }
  if (mime.startsWith('audio/')) {
    const format = AUDIO[mime.slice('audio/'.length).replace(/;.*/s, '')]
    if (format) return { type: 'input_audio', input_audio: { data: base64, format } }
    throw errors.invalidParameters(`${at}.mimeType: must be one of ${audioTypes}`, `${at}.mimeType`)
  }
  return { type: 'file', file: { filename: nameOf(mime), file_data: `data:${mime};base64,${base64}` } }
}

const audioTypes = Object.keys(AUDIO)
  .map(name => `"audio/${name}"`)
  .join(', ')
const nameOf = (mime: string): string => (mime === 'application/pdf' ? 'document.pdf' : 'file')

/** Addresses of files stored at the provider, or public ones. */
const HELD = /^(?:gs:\/\/|files\/|https:\/\/generativelanguage\.googleapis\.com\/|https:\/\/(?:www\.)?youtu)/

function filePart({ mimeType, fileUri }: File, at: string): ContentPart {
  if (HELD.test(fileUri)) return { type: 'file', file: { file_id: fileUri } }
  assertImageUrl(fileUri, `${at}.fileUri`)
  const mime = mimeType?.toLowerCase() ?? ''
  if (mime.startsWith('image/')) return { type: 'image_url', image_url: { url: fileUri } }
  return { type: 'file', file: { filename: nameOf(mime), file_data: fileUri } }
}
