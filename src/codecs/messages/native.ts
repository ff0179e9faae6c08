/** A Messages request for providers of the same wire. */
import type { ChatRequest } from '../../core/chat-request.ts'
import type { Exchange } from '../../core/exchange.ts'
import { pagesOf } from '../../core/media.ts'
import { valueSize } from '../../core/usage.ts'
import type { NativeRequest } from '../../core/wire.ts'
import { isObject, type Json, listIn, objectIn, textIn } from '../../json/json.ts'
import { nativeSettings } from '../native-body.ts'
import { blockSchemas } from './schema.ts'
import { WIRE } from './sink.ts'
import { type PlacedTool, toolsIn } from './tools-in.ts'

const FIELDS = ['billing_policy', 'compaction', 'container', 'inference_geo', 'mcp_servers'] as const

/** Tools with a chat form; others run at the provider, or have a schema that only its models know. */
const KNOWN_TOOLS = /^(?:custom$|(?:web_search|tool_search_tool)_)/
/** Blocks with a chat form. */
const KNOWN_BLOCKS = new Set([...blockSchemas.keys(), 'tool_reference', 'tool_addition', 'tool_removal'])

/**
 * Path of the first field that only providers of this wire support: without it another wire would answer another
 * question. Undefined for a body that any wire can carry. `tools` are all of the body's.
 */
function nativeOnly(body: Json, tools: readonly PlacedTool[]): string | undefined {
  for (const name of FIELDS) if (saysAnything(body[name])) return name
  const own = tools.find(({ tool }) => isObject(tool) && !KNOWN_TOOLS.test(textIn(tool.type) ?? 'custom'))
  if (own) return `${own.at}.type`
  for (const [i, message] of listIn(body.messages).entries()) {
    const found = isObject(message) ? inTurn(message, `messages[${i}].content`) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

const saysAnything = (value: unknown): boolean => value != null && !(Array.isArray(value) && value.length === 0)

/** Provider content in assistant turns may be dropped for others; user content may not. */
function inTurn({ role, content }: Json, at: string): string | undefined {
  for (const [i, block] of listIn(content).entries()) {
    if (!isObject(block)) continue
    const type = String(block.type)
    if (type === 'compaction' ? textIn(block.content) === undefined : role !== 'assistant' && !KNOWN_BLOCKS.has(type)) {
      return `${at}[${i}].type`
    }
    if (type !== 'tool_result') continue
    const found = inTurn({ content: block.content }, `${at}[${i}].content`)
    if (found !== undefined) return found
  }
  return undefined
}

/** Header of features that a client turns on. */
const BETA = 'anthropic-beta'

/** `body` has passed the endpoint's schema. */
export function nativeOf(body: Json, ex: Exchange, size: number): NativeRequest {
  const beta = ex.header(BETA)
  const tools = toolsIn(body)
  return {
    wire: WIRE,
    body: current(body),
    headers: beta === undefined ? undefined : { [BETA]: beta },
    only: nativeOnly(body, tools),
    pages: pagesIn(tools),
    loops: isPresent(body.mcp_servers) || tools.some(isHosted),
    size,
  }
}

/** Tools that the client runs; the provider runs all others. */
const CLIENT = /^(?:custom$|(?:bash|browser|computer|memory|text_editor)_)/

const isHosted = ({ tool }: PlacedTool): boolean => isObject(tool) && !CLIENT.test(textIn(tool.type) ?? 'custom')

const isPresent = (servers: unknown): boolean => listIn(servers).length > 0

function pagesIn(tools: readonly PlacedTool[]): number {
  let pages = 0
  for (const { tool } of tools) {
    if (!isObject(tool) || typeof tool.type !== 'string' || !tool.type.startsWith('web_fetch_')) continue
    pages += pagesOf(tool.max_uses)
  }
  return pages
}

/** The body without fields that need a beta: the answer format has a stable name. */
function current(body: Json): Json {
  if (!Object.hasOwn(body, 'output_format') && !Object.hasOwn(body, 'thread')) return body
  const { output_format: format, thread: _, ...rest } = body
  if (format == null) return rest
  return { ...rest, output_config: { ...(rest.output_config as Json | null | undefined), format } }
}

/** Bytes of a body that its providers read, and that `request`, its chat form, does not hold. */
export function nativeSize(body: Json, request: ChatRequest): number {
  const { tools, output_config: output, context_management: edits, compaction } = body
  let sum = nativeSettings([tools, output, edits, compaction], request) + inBlocks(body.system)
  for (const message of listIn(body.messages)) {
    // Beside text and calls, blocks of the assistant are sealed.
    if (isObject(message) && message.role !== 'assistant') sum += inBlocks(message.content)
  }
  return sum
}

function inBlocks(content: unknown): number {
  let sum = 0
  for (const block of listIn(content)) if (isObject(block)) sum += inBlock(block)
  return sum
}

function inBlock(block: Json): number {
  switch (block.type) {
    case 'text':
    case 'image':
    case 'tool_use':
    case 'thinking':
    case 'redacted_thinking':
      return 0
    case 'tool_result':
    case 'search_result':
      return inBlocks(block.content)
    case 'document':
      return inDocument(block)
    case 'compaction':
      return textIn(block.content) === undefined ? valueSize(block) : valueSize(block.tool_changes ?? [])
    default:
      return valueSize(block)
  }
}

/** A file has a title in a chat request, and no context. */
function inDocument({ source, context }: Json): number {
  const { type, content } = objectIn(source)
  if (type === 'text') return 0
  return type === 'content' ? inBlocks(content) : valueSize(context)
}
