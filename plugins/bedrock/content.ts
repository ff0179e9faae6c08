/** Content parts of a chat message as Converse blocks. */
import {
  append,
  type ContentPart,
  errors,
  type Mapping,
  type Message,
  parseDataUrl,
  parseFile,
} from '../../src/plugin.ts'
import { UniqueNames } from '../shared/claude/unique-names.ts'
import { type Block, cachePoint, markOf, textBlock } from './block.ts'
import { audioBlock, fileBlock, imageBlock } from './media.ts'

/** Converts the contents of one request's messages. */
export class Contents {
  readonly #mapping: Mapping
  readonly #names = new UniqueNames(documentName)

  constructor(mapping: Mapping) {
    this.#mapping = mapping
  }

  /**
   * The blocks of a message's content, without empty text, which the wire rejects. `at`: the message's path, for
   * errors. `marks: false` omits the parts' own breakpoints.
   */
  blocks(content: Message['content'], at: string, marks = true): Block[] {
    if (typeof content === 'string') return visible(content)
    const blocks: Block[] = []
    content?.forEach((part, j) => {
      const made = this.#part(part, `${at}.content[${j}]`)
      append(blocks, made)
      if (marks && made.length > 0) append(blocks, cachePoint(markOf(part), this.#mapping))
    })
    return blocks
  }

  /** Text blocks, for messages that may contain nothing else. */
  texts(message: Message, at: string): Block[] {
    const { content, role } = message
    if (Array.isArray(content) && content.some(({ type }) => type !== 'text' && type !== 'refusal')) {
      throw errors.unsupported(`A message of the role "${role}" may hold text only.`, `${at}.content`)
    }
    const blocks = this.blocks(content, at)
    return blocks.length > 0 ? blocks : this.blocks(message.refusal, at)
  }

  #part(part: ContentPart, at: string): Block[] {
    switch (part.type) {
      case 'text':
        return visible(part.text)
      case 'refusal':
        return visible(part.refusal)
      case 'image_url':
        return [image(part.image_url.url, `${at}.image_url.url`)]
      case 'file':
        return [this.#file(part.file, `${at}.file`)]
      case 'input_audio': {
        const { data, format } = part.input_audio
        return [audioBlock(parseDataUrl(data)?.base64 ?? data, format, `${at}.input_audio.format`)]
      }
    }
  }

  #file({ file_id, file_data, filename }: Extract<ContentPart, { type: 'file' }>['file'], at: string): Block {
    if (file_id && !file_data) {
      const field = `${at}.file_id`
      throw errors.unsupported(`${field}: this provider keeps no files; send the file itself as file_data.`, field)
    }
    const parsed = parseFile(file_data ?? '', filename)
    if (parsed) return fileBlock(parsed.base64, parsed.mime, filename, this.#names, `${at}.file_data`)
    throw errors.invalidParameters(`${at} needs file_data, a data URL such as "data:application/pdf;base64,…".`, at)
  }
}

const visible = (text: string): Block[] => (/\S/.test(text) ? [textBlock(text)] : [])

/** The wire accepts no addresses, and the gateway does not fetch callers' addresses with its own credentials. */
function image(url: string, at: string): Block {
  const parsed = parseDataUrl(url)
  if (parsed) return imageBlock(parsed.base64, at)
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(url)) {
    throw errors.unsupported(`${at} is an address; this provider takes images as data URLs only.`, at)
  }
  throw errors.invalidParameters(`${at} must be a data URL such as "data:image/png;base64,…".`, at)
}

/** Names of documents in the wire's alphabet: letters, digits, single spaces, hyphens, () and []. */

const MAX_NAME_CHARACTERS = 200
/** Characters that are read of a name: more than it has, since marks and spaces in a row are left out. */
const MAX_READ_CHARACTERS = 4 * MAX_NAME_CHARACTERS

/** A name without its extension; for `UniqueNames`. */
function documentName(filename: string, count: number): string {
  const dot = filename.lastIndexOf('.')
  const plain = filename
    .slice(0, dot < 0 ? MAX_READ_CHARACTERS : Math.min(dot, MAX_READ_CHARACTERS))
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
  const words = plain.replace(/[^a-zA-Z0-9\-()[\]]+/g, ' ').trim()
  const suffix = count === 1 ? '' : ` (${count})`
  return (words || 'document').slice(0, MAX_NAME_CHARACTERS - suffix.length).trimEnd() + suffix
}
