/** Content parts as Mistral's content chunks. */
import {
  type ContentPart,
  errors,
  isText,
  type Json,
  type Message,
  parseDataUrl,
  parseFile,
  sniffImage,
  wellFormed,
} from '../../../src/plugin.ts'

type Content = Message['content']

/** The content of a user message or tool result, without empty text. `at`: the message's path. */
export function contentOf(content: Content, at: string): string | Json[] {
  if (typeof content === 'string') return wellFormed(content)
  const chunks: Json[] = []
  content?.forEach((part, j) => {
    const chunk = chunkOf(part, `${at}.content[${j}]`)
    if (chunk.text !== '') chunks.push(chunk)
  })
  return chunks
}

/** The text of a message that may contain nothing else. Throws 400 for other parts. */
export function plainText(content: Content, at: string, role: Message['role']): string {
  if (typeof content === 'string') return wellFormed(content)
  let text = ''
  content?.forEach((part, j) => {
    if (part.type === 'text') text += part.text
    else if (part.type === 'refusal') text += part.refusal
    else throw errors.unsupported(`A message of role "${role}" may hold text only here.`, `${at}.content[${j}]`)
  })
  return wellFormed(text)
}

/** One string, if that loses nothing (edge case C8). */
export function joined(content: string | Json[]): string | Json[] {
  if (typeof content === 'string' || content.some(chunk => chunk.type !== 'text')) return content
  return content.map(chunk => chunk.text).join('')
}

const textChunk = (text: string): Json => ({ type: 'text', text: wellFormed(text) })

function chunkOf(part: ContentPart, at: string): Json {
  switch (part.type) {
    case 'text':
      return textChunk(part.text)
    case 'refusal':
      return textChunk(part.refusal)
    case 'image_url': {
      const { url: given, detail } = part.image_url
      const url = imageUrl(given, `${at}.image_url.url`)
      return { type: 'image_url', image_url: detail === undefined ? { url } : { url, detail } }
    }
    case 'input_audio': {
      const { data } = part.input_audio
      return { type: 'input_audio', input_audio: parseDataUrl(data)?.base64 ?? data }
    }
    case 'file':
      return fileChunk(part.file, `${at}.file`)
  }
}

/** Text files are sent as text: the wire's document reader accepts pages, not characters. */
function fileChunk(file: Extract<ContentPart, { type: 'file' }>['file'], at: string): Json {
  if (file.file_id) return { type: 'file', file_id: file.file_id }
  const { filename, file_data: url = '' } = file
  const parsed = parseFile(url, filename)
  if (!parsed) {
    throw errors.invalidParameters(`${at} needs file_data, a data URL such as "data:application/pdf;base64,…".`, at)
  }
  const { mime, base64 } = parsed
  if (mime.startsWith('image/')) {
    return { type: 'image_url', image_url: { url: imageUrl(url, `${at}.file_data`) } }
  }
  if (isText(mime)) return textChunk(titled(filename, textOfBase64(base64)))
  return {
    type: 'document_url',
    document_url: `data:${mime};base64,${base64}`,
    ...(filename === undefined ? {} : { document_name: filename }),
  }
}

/** Bytes that are not UTF-8 become U+FFFD. */
export const textOfBase64 = (base64: string): string => Buffer.from(base64, 'base64').toString('utf8')

/** A file's text as part of a message. */
export const titled = (filename: string | undefined, text: string): string =>
  filename ? `${filename}\n\n${text}` : text

const IMAGES = 'a JPEG, PNG, GIF or WebP image'

/**
 * An http(s) address unchanged; a data URL in plain form, with the media type of its first bytes. Throws 400 for any
 * other address and for data that is not an image.
 */
export function imageUrl(url: string, at: string): string {
  if (/^https?:\/\//i.test(url)) return url
  const parsed = parseDataUrl(url)
  if (!parsed) throw errors.invalidParameters(`${at} must be an https URL, or a data URL of ${IMAGES}.`, at)
  const mime = sniffImage(parsed.base64)
  if (!mime) throw errors.invalidParameters(`${at} does not hold ${IMAGES}.`, at)
  return `data:${mime};base64,${parsed.base64}`
}
