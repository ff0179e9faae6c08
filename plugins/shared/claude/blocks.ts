/** Content parts of a chat message as Messages content blocks. */
import {
  type ContentPart,
  errors,
  isText,
  type Message,
  parseDataUrl,
  parseFile,
  sniffImage,
  wellFormed,
} from '../../../src/plugin.ts'

/** A content block of the Messages wire, identified by `type`. */
export interface Block {
  type: string
  [field: string]: unknown
}

/** A block of text, which must be visible. */
export const textBlock = (text: string): Block => ({ type: 'text', text })

/**
 * The blocks of a message's content, without empty text, which the wire rejects. `at`: the message's path, for errors.
 * `marks: false` omits the parts' own cache breakpoints.
 */
export function contentBlocks(content: Message['content'], at: string, marks = true): Block[] {
  if (typeof content === 'string') return isVisible(content) ? [textBlock(wellFormed(content))] : []
  const blocks: Block[] = []
  content?.forEach((part, j) => {
    const block = partBlock(part, `${at}.content[${j}]`, marks)
    if (block) blocks.push(block)
  })
  return blocks
}

/** False for text of only white space, which the wire rejects. */
export const isVisible = (text: string): boolean => /\S/.test(text)

function partBlock(part: ContentPart, at: string, marks: boolean): Block | undefined {
  switch (part.type) {
    case 'text': {
      if (!isVisible(part.text)) return undefined
      const block = textBlock(wellFormed(part.text))
      return marked(block, part, marks)
    }
    case 'refusal':
      return isVisible(part.refusal) ? textBlock(wellFormed(part.refusal)) : undefined
    case 'image_url':
      return marked(imageBlock(part.image_url.url, `${at}.image_url.url`), part, marks)
    case 'file':
      return marked(fileBlock(part.file, `${at}.file`), part, marks)
    case 'input_audio':
      throw errors.unsupported('This provider takes no audio; send text, images or files.', `${at}.input_audio`)
  }
}

type Marked = { readonly cache_control?: object | undefined }

const marked = (block: Block, { cache_control }: Marked, marks: boolean): Block =>
  marks && cache_control ? { ...block, cache_control } : block

const IMAGES = 'a JPEG, PNG, GIF or WebP image'

function imageBlock(url: string, at: string): Block {
  if (/^https?:\/\//i.test(url)) return { type: 'image', source: { type: 'url', url } }
  const parsed = parseDataUrl(url)
  if (!parsed) throw errors.invalidParameters(`${at} must be an https URL, or a data URL of ${IMAGES}.`, at)
  return inlineImage(parsed.base64, at)
}

function inlineImage(base64: string, at: string): Block {
  const mime = sniffImage(base64)
  if (!mime) throw errors.invalidParameters(`${at} does not hold ${IMAGES}.`, at)
  return { type: 'image', source: { type: 'base64', media_type: mime, data: base64 } }
}

type FilePart = Extract<ContentPart, { type: 'file' }>['file']

function fileBlock(file: FilePart, at: string): Block {
  const title = file.filename ? { title: file.filename } : {}
  if (file.file_id) return { type: 'document', source: { type: 'file', file_id: file.file_id }, ...title }
  const parsed = parseFile(file.file_data ?? '', file.filename)
  if (!parsed) {
    throw errors.invalidParameters(`${at} needs file_data, a data URL such as "data:application/pdf;base64,…".`, at)
  }
  const { mime, base64 } = parsed
  if (mime === 'application/pdf') {
    return { type: 'document', source: { type: 'base64', media_type: mime, data: base64 }, ...title }
  }
  if (isText(mime)) {
    const data = Buffer.from(base64, 'base64').toString('utf8')
    return { type: 'document', source: { type: 'text', media_type: 'text/plain', data }, ...title }
  }
  if (mime.startsWith('image/')) return inlineImage(base64, `${at}.file_data`)
  const where = `${at}.file_data`
  throw errors.invalidParameters(`${where} is "${mime}"; this provider takes PDF, text and images.`, where)
}
