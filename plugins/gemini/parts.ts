/** Chat content parts as parts of the wire. */
import {
  type ContentPart,
  errors,
  type Message,
  parseDataUrl,
  parseFile,
  type Target,
  typeOfBase64,
  typeOfName,
  unseal,
} from '../../src/plugin.ts'

/** One part of a turn, with exactly one data field; `thoughtSignature` may accompany it. */
export interface Part {
  text?: string
  thoughtSignature?: string
  [field: string]: unknown
}

/** The parts of a message's content, without empty text. `at`: the message's path, for errors. */
export function contentParts(content: Message['content'], at: string, target: Target): Part[] {
  if (typeof content === 'string') return content === '' ? [] : [{ text: content }]
  const parts: Part[] = []
  content?.forEach((given, j) => {
    const part = partOf(given, `${at}.content[${j}]`, target)
    if (part) parts.push(part)
  })
  return parts
}

function partOf(part: ContentPart, at: string, target: Target): Part | undefined {
  switch (part.type) {
    case 'text': {
      const signature = unseal(target, part.extra_content?.vendor?.thought_signature)
      if (signature !== undefined) return { text: part.text, thoughtSignature: signature }
      return part.text === '' ? undefined : { text: part.text }
    }
    case 'refusal':
      return part.refusal === '' ? undefined : { text: part.refusal }
    case 'image_url':
      return imagePart(part.image_url.url, `${at}.image_url.url`)
    case 'input_audio':
      return audioPart(part.input_audio)
    case 'file':
      return filePart(part.file, `${at}.file`)
  }
}

const inline = (mimeType: string, data: string): Part => ({ inlineData: { mimeType, data } })

/** The provider fetches addresses itself and needs their media type. */
function imagePart(url: string, at: string): Part {
  if (/^https?:\/\//i.test(url)) {
    const named = typeOfName(url)
    return { fileData: { mimeType: named?.startsWith('image/') ? named : 'image/jpeg', fileUri: url } }
  }
  const part = imageOf(url)
  if (part) return part
  throw errors.invalidParameters(
    `${at} must be an https URL, or a data URL of a PNG, JPEG, WebP, HEIC or GIF image.`,
    at,
  )
}

/** Declared types may be wrong, and the provider trusts them (R1). */
const IMAGES = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/heic', 'image/heif', 'image/gif'])

/** A data URL as an inline image; undefined when it is not an image. */
export function imageOf(url: string): Part | undefined {
  const base64 = parseDataUrl(url)?.base64
  const mime = base64 ? typeOfBase64(base64, '') : ''
  return base64 && IMAGES.has(mime) ? inline(mime, base64) : undefined
}

function audioPart({ data, format }: Extract<ContentPart, { type: 'input_audio' }>['input_audio']): Part {
  const base64 = parseDataUrl(data)?.base64 ?? data
  const declared = `audio/${format}`
  const mime = typeOfBase64(base64, declared)
  return inline(mime.startsWith('audio/') ? mime : declared, base64)
}

function filePart(file: Extract<ContentPart, { type: 'file' }>['file'], at: string): Part {
  if (file.file_id) return storedPart(file.file_id, file.filename, `${at}.file_id`)
  const parsed = parseFile(file.file_data ?? '', file.filename)
  if (!parsed) {
    throw errors.invalidParameters(`${at} needs file_data, a data URL such as "data:application/pdf;base64,…".`, at)
  }
  return inline(parsed.mime, parsed.base64)
}

/** A file stored at the provider (R17: other providers' ids are unknown to it). */
function storedPart(id: string, name: string | undefined, at: string): Part {
  if (!/^(?:https:\/\/|gs:\/\/|files\/)/.test(id)) {
    const form = 'the address of a file of this provider, such as "https://…/files/abc" or "gs://bucket/file"'
    throw errors.invalidParameters(`${at} must be ${form}; files of other providers must be sent as file_data.`, at)
  }
  const mimeType = typeOfName(name ?? id)
  return { fileData: { ...(mimeType && { mimeType }), fileUri: id } }
}
