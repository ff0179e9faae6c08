/** Bytes of a Messages body that its providers read, and a chat request does not hold. */
import type { ChatRequest } from '../../core/chat-request.ts'
import { valueSize } from '../../core/usage.ts'
import { isObject, type Json, listIn, objectIn, textIn } from '../../json/json.ts'
import { nativeSettings } from '../native-size.ts'

/** `body` has passed the endpoint's schema, and `request` is its chat form. */
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
