/**
 * Fields of a Messages request that only providers of this wire support: without them another wire would answer another
 * question.
 */
import { isObject, type Json, listIn, textIn } from '../../json/json.ts'
import { blockSchemas } from './schema.ts'
import type { PlacedTool } from './tools-in.ts'

const FIELDS = ['billing_policy', 'compaction', 'container', 'inference_geo', 'mcp_servers'] as const

/** Tools with a chat form, and client tools; others run at the provider. */
const KNOWN_TOOLS = /^(?:custom$|(?:web_search|tool_search_tool|bash|text_editor|memory|computer)_)/
/** Blocks with a chat form. */
const KNOWN_BLOCKS = new Set([...blockSchemas.keys(), 'tool_reference', 'tool_addition', 'tool_removal'])

/**
 * Path of the first such field; undefined for a body that any wire can carry. `body` has passed its schema, and `tools`
 * are all of it.
 */
export function nativeOnly(body: Json, tools: readonly PlacedTool[]): string | undefined {
  for (const name of FIELDS) if (saysAnything(body[name])) return name
  const hosted = tools.find(({ tool }) => isObject(tool) && !KNOWN_TOOLS.test(textIn(tool.type) ?? 'custom'))
  if (hosted) return `${hosted.at}.type`
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
