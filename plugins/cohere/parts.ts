/** Content parts as Cohere's content, and files as its documents. */
import {
  type ContentPart,
  errors,
  isText,
  type Json,
  type Message,
  parseFile,
  SHOWN_NEXT,
  wellFormed,
} from '../../src/plugin.ts'
import { imageUrl, textOfBase64, titled } from '../shared/chat-completions/parts.ts'

type Content = Message['content']
type FilePart = Extract<ContentPart, { type: 'file' }>['file']

/**
 * A user's content without empty text. Text files are added to `documents`, or inlined when there is no list. `at`: the
 * message's path.
 */
export function userContent(content: Content, at: string, documents: Json[] | undefined): string | Json[] {
  if (typeof content === 'string') return wellFormed(content)
  const blocks: Json[] = []
  content?.forEach((part, j) => {
    const block = userBlock(part, `${at}.content[${j}]`, documents)
    if (block && block.text !== '') blocks.push(block)
  })
  return blocks
}

/**
 * A tool result's content: its text, or documents when it contains files. Images, which the wire accepts only from
 * users, are added to `shown` after `note`.
 */
export function resultContent(content: Content, at: string, note: string, shown: Json[]): string | Json[] {
  if (typeof content === 'string') return wellFormed(content)
  const images = content?.map(isImage) ?? []
  const hasImages = images.includes(true)
  if (hasImages) shown.push({ type: 'text', text: note })
  const texts: string[] = []
  const documents: Json[] = []
  content?.forEach((part, j) => {
    const where = `${at}.content[${j}]`
    let text: string
    if (part.type === 'text') text = wellFormed(part.text)
    else if (part.type === 'refusal') text = wellFormed(part.refusal)
    else if (images[j]) {
      shown.push(userBlock(part, where, undefined)!)
      return
    } else if (part.type === 'file') {
      documents.push({ type: 'document', document: documentOf(part.file, `${where}.file`) })
      return
    } else
      throw errors.unsupported('With this provider, a tool result may contain only text, text files and images.', where)
    texts.push(text)
    if (text !== '') documents.push({ type: 'document', document: { data: { text } } })
  })
  const hasFiles = content?.some((part, j) => part.type === 'file' && !images[j])
  if (hasFiles) return documents
  return texts.join(hasImages ? '\n' : '') || (hasImages ? SHOWN_NEXT : '')
}

const isImage = (part: ContentPart): boolean =>
  part.type === 'image_url' || (part.type === 'file' && isImageType(fileOf(part.file)?.mime))
const isImageType = (mime = ''): boolean => mime.startsWith('image/')
const fileOf = ({ file_data: url = '', filename }: FilePart) => parseFile(url, filename)

function userBlock(part: ContentPart, at: string, documents: Json[] | undefined): Json | undefined {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: wellFormed(part.text) }
    case 'refusal':
      return { type: 'text', text: wellFormed(part.refusal) }
    case 'image_url': {
      const { url: given, detail } = part.image_url
      const url = imageUrl(given, `${at}.image_url.url`)
      return { type: 'image_url', image_url: detail === undefined ? { url } : { url, detail } }
    }
    case 'input_audio':
      throw errors.unsupported('This provider takes no audio; send text, images or files.', `${at}.input_audio`)
    case 'file': {
      const where = `${at}.file`
      if (isImage(part)) {
        return { type: 'image_url', image_url: { url: imageUrl(part.file.file_data!, `${where}.file_data`) } }
      }
      if (!documents) return { type: 'text', text: titled(part.file.filename, fileText(part.file, where)) }
      documents.push(documentOf(part.file, where))
      return undefined
    }
  }
}

const documentOf = (file: FilePart, at: string): Json => ({
  data: { text: fileText(file, at), ...(file.filename === undefined ? {} : { title: file.filename }) },
})

/** The text of a text file; the wire accepts no other files. */
function fileText(file: FilePart, at: string): string {
  const parsed = fileOf(file)
  if (!parsed) {
    throw errors.invalidParameters(`${at} needs file_data, a data URL such as "data:text/plain;base64,…".`, at)
  }
  if (isText(parsed.mime)) return wellFormed(textOfBase64(parsed.base64))
  const where = `${at}.file_data`
  throw errors.invalidParameters(`${where} is "${parsed.mime}"; this provider takes text and images.`, where)
}
