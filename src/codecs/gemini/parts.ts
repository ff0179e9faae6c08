/** Converts parts of a generateContent body to chat content parts. */

import type { ContentPart } from '../../core/chat-request.ts'
import { errors } from '../../lib/error.ts'
import { plainBase64 } from '../../wire/wire.ts'
import { audioFormatOf, audioSubtypes } from '../chat-parts.ts'
import { assertImageUrl, assertOneSource } from '../url.ts'
import type { Part } from './schema.ts'

const THINGS = ['functionCall', 'functionResponse', 'inlineData', 'fileData']

type Blob = NonNullable<Part['inlineData']>
type File = NonNullable<Part['fileData']>

/** Throws a 400 for a part of which only one thing would be read. */
export const assertOneThing = (part: Part, at: string): void => assertOneSource(part, at, THINGS)

/** `at`: path of the part. Undefined for parts that only their own provider can read. */
export function partOf(part: Part, at: string): ContentPart | undefined {
  assertOneThing(part, at)
  if (part.inlineData) return blobPart(part.inlineData, `${at}.inlineData`)
  if (part.fileData) return filePart(part.fileData, `${at}.fileData`)
  return part.text ? { type: 'text', text: part.text } : undefined
}

/** Clients use either alphabet of RFC 4648. */
const standard = (data: string): string => (data.includes('-') || data.includes('_') ? plainBase64(data) : data)

function blobPart({ mimeType, data }: Blob, at: string): ContentPart {
  const mime = mimeType.toLowerCase()
  const base64 = standard(data)
  if (mime.startsWith('image/')) {
    const url = `data:${mime};base64,${base64}`
    assertImageUrl(url, at)
    return { type: 'image_url', image_url: { url } }
  }
  if (mime.startsWith('audio/')) {
    const format = audioFormatOf(mime)
    if (format) return { type: 'input_audio', input_audio: { data: base64, format } }
    throw errors.invalidField(`${at}.mimeType`, `must be one of ${audioTypes}`)
  }
  return { type: 'file', file: { filename: nameOf(mime), file_data: `data:${mime};base64,${base64}` } }
}

const audioTypes = audioSubtypes.map(name => `"audio/${name}"`).join(', ')
const nameOf = (mime: string): string => (mime === 'application/pdf' ? 'document.pdf' : 'file')

/** Addresses of files stored at the provider, or public ones. */
const HELD = /^(?:gs:\/\/|files\/|https:\/\/(?:generativelanguage\.googleapis\.com|(?:www\.)?youtube\.com|youtu\.be)\/)/

function filePart({ mimeType, fileUri }: File, at: string): ContentPart {
  if (HELD.test(fileUri)) return { type: 'file', file: { file_id: fileUri } }
  assertImageUrl(fileUri, `${at}.fileUri`)
  const mime = mimeType?.toLowerCase() ?? ''
  if (mime.startsWith('image/')) return { type: 'image_url', image_url: { url: fileUri } }
  const format = audioFormatOf(mime)
  if (format) return { type: 'input_audio', input_audio: { data: fileUri, format } }
  return { type: 'file', file: { filename: nameOf(mime), file_data: fileUri } }
}
