/** Converts content blocks of a Messages body to chat content parts. */
import type { ContentPart } from '../../core/chat-request.ts'
import { textPart } from '../chat-parts.ts'
import { assertImageUrl, assertOneSource } from '../url.ts'
import type { Block, CacheControl, ImageSource } from './schema.ts'

/** The mark without fields specific to its own wire. */
export const markOf = (control: CacheControl): { type: 'ephemeral'; ttl?: '5m' | '1h' } | undefined =>
  control ? { type: 'ephemeral', ...(control.ttl && { ttl: control.ttl }) } : undefined

/** `at`: path of `content`, for errors. Drops blocks without a chat form. */
export function partsOf(content: string | readonly Block[], at: string): ContentPart[] {
  if (typeof content === 'string') return content === '' ? [] : [textPart(content)]
  return content.flatMap((block, i) => partOf(block, `${at}[${i}]`))
}

/** `at`: path of the block, whose cache breakpoint the last of its parts gets. */
export function partOf(block: Block, at: string): ContentPart[] {
  const parts = plainPartsOf(block, at)
  const mark = 'cache_control' in block ? markOf(block.cache_control as CacheControl) : undefined
  const last = parts.at(-1)
  if (mark && last && last.type !== 'refusal' && last.type !== 'input_audio') {
    parts[parts.length - 1] = { ...last, cache_control: mark }
  }
  return parts
}

function plainPartsOf(block: Block, at: string): ContentPart[] {
  switch (block.type) {
    case 'text':
      return block.text === '' ? [] : [textPart(block.text)]
    case 'image':
      return [imagePart(block.source, `${at}.source`)]
    case 'document':
      return documentParts(block, `${at}.source`)
    case 'search_result': {
      const found = partsOf(block.content as Block[], `${at}.content`)
      return [textPart(`${block.title}\n${block.source}`), ...found]
    }
    default: {
      const note = noteOf(block)
      return note === undefined ? [] : [textPart(note)]
    }
  }
}

const SOURCES = ['data', 'url', 'file_id', 'content']

function imagePart(source: ImageSource, at: string): ContentPart {
  assertOneSource(source, at, SOURCES)
  if (source.type === 'file') return { type: 'file', file: { file_id: source.file_id } }
  const url = source.type === 'url' ? source.url : dataUrl(source)
  assertImageUrl(url, source.type === 'url' ? `${at}.url` : `${at}.media_type`)
  return { type: 'image_url', image_url: { url } }
}

const dataUrl = ({ media_type: mime, data }: { media_type: string; data: string }) => `data:${mime};base64,${data}`

function documentParts({ source, title, context }: Extract<Block, { type: 'document' }>, at: string): ContentPart[] {
  assertOneSource(source, at, SOURCES)
  const heading = [title, context].filter(Boolean).join('\n')
  const head = heading === '' ? [] : [textPart(heading)]
  switch (source.type) {
    case 'base64':
      return [{ type: 'file', file: { filename: title || 'document.pdf', file_data: dataUrl(source) } }]
    case 'url':
      // Not fetched here; a provider may fetch it, and must not be directed to an internal address.
      assertImageUrl(source.url, `${at}.url`)
      return [{ type: 'file', file: { filename: title || 'document.pdf', file_data: source.url } }]
    case 'file':
      return [{ type: 'file', file: { file_id: source.file_id } }]
    case 'text':
      return [...head, textPart(source.data)]
    case 'content':
      return [...head, ...partsOf(source.content as string | Block[], `${at}.content`)]
  }
}

/** A note that tells the model about a dropped block. */
function noteOf(block: { type: string }): string | undefined {
  const { type, name, tool_name, tool, content } = block as Record<string, unknown>
  const named = [name, tool_name, (tool as { name?: unknown } | null | undefined)?.name]
  const known = named.find(value => typeof value === 'string') ?? 'unnamed'
  switch (type) {
    case 'tool_reference':
      return `[tool found: ${known}]`
    case 'tool_addition':
      return `[tool added: ${known}]`
    case 'tool_removal':
      return `[tool removed: ${known}]`
    case 'compaction':
      return typeof content === 'string' && content !== ''
        ? `Summary of the conversation so far:\n${content}`
        : undefined
    default:
      return undefined
  }
}
