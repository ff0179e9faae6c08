/** Turns of a Messages body as chat messages. */
import type { ContentPart, Message } from '../../core/chat-request.ts'
import { compact } from '../chat-parts.ts'
import { ToolJson } from '../tool-json.ts'
import { assistantMessage } from './assistant.ts'
import { markOf, partOf, partsOf } from './parts.ts'
import type { Block, MessageTurn } from './schema.ts'

/**
 * A user turn becomes one message per result, and then the rest. Content between calls and results moves after the
 * results, because other wires allow nothing between them.
 */
export function historyOf(turns: readonly MessageTurn[]): Message[] {
  const messages: Message[] = []
  const json = new ToolJson()
  let held: Message[] = []
  let isAnswering = false
  const release = () => {
    for (const message of held) messages.push(message)
    held = []
    isAnswering = false
  }
  const lastUser = turns.findLastIndex(({ role }) => role === 'user')
  turns.forEach((turn, i) => {
    const at = `messages[${i}].content`
    switch (turn.role) {
      case 'system':
      case 'developer': {
        // Meant for an earlier user turn, or empty.
        if ((turn.clear_at === 'next_user_message' && i < lastUser) || isSetting(turn)) break
        const message: Message = { role: turn.role, content: compact(partsOf(turn.content, at)) }
        if (isAnswering) held.push(message)
        else messages.push(message)
        break
      }
      case 'assistant': {
        release()
        const message = assistantMessage(turn, at, json)
        if (!message) break
        messages.push(message)
        isAnswering = message.tool_calls !== undefined
        break
      }
      default: {
        const { results, rest } = userTurn(turn, at)
        for (const result of results) messages.push(result)
        if (!rest) break
        // More results may follow in another message.
        if (isAnswering) held.push(rest)
        else messages.push(rest)
      }
    }
  })
  release()
  return messages
}

const isSetting = ({ content }: Partial<MessageTurn>): boolean => content === undefined

function userTurn(
  { role, content, tool_call_id: id }: MessageTurn,
  at: string,
): { results: Message[]; rest: Message | undefined } {
  const blocks: readonly Block[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const results: Message[] = []
  const own: ContentPart[] = []
  blocks.forEach((block, i) => {
    if (block.type === 'tool_result') results.push(resultOf(block, `${at}[${i}].content`))
    else for (const part of partOf(block, `${at}[${i}]`)) own.push(part)
  })
  const isResult = role !== 'user' && results.length === 0 && id
  if (isResult) results.push(toolMessage(id, own.splice(0)))
  const isEmpty = own.length === 0 && results.length > 0
  return { results, rest: isEmpty ? undefined : { role: 'user', content: compact(own) } }
}

type ToolResult = Extract<Block, { type: 'tool_result' }>

function resultOf(block: ToolResult, at: string): Message {
  const content = (block.content ?? '') as string | Block[]
  const nested = typeof content === 'string' ? [] : content.map(inner => ('cache_control' in inner ? inner : undefined))
  const mark = markOf(block.cache_control ?? nested.findLast(inner => inner?.cache_control)?.cache_control)
  const message = toolMessage(block.tool_use_id, partsOf(content, at))
  if (block.is_error) message.is_error = true
  return mark ? { ...message, tool_result_cache_control: mark } : message
}

/** Text alone becomes one string, which every provider accepts; images and files stay in place. */
function toolMessage(id: string, parts: ContentPart[]): Message {
  const texts = parts.flatMap(part => (part.type === 'text' ? [part.text] : []))
  return { role: 'tool', tool_call_id: id, content: texts.length === parts.length ? texts.join('\n') : parts }
}
