/** Cache marks for clients that set none, at providers that cache only marked prompts. */

import type { ChatRequest, ContentPart, Message, Tool } from '../../core/chat-request.ts'
import { type Price, ratesFor } from '../../core/money.ts'
import type { Mapping } from '../../core/translator.ts'
import { estimateTokens, textSize } from '../../core/usage.ts'
import { MIN_CACHEABLE_TOKENS } from '../../metering/prompt.ts'
import { jsonSize } from './prompt-size.ts'

const MARK: CacheMark = { type: 'ephemeral' }
type CacheMark = NonNullable<Message['tool_result_cache_control']>

/**
 * The request with up to four marks: after its tools, its system messages, the turn before the last, and the last turn.
 * Unchanged when it has marks, will probably not be continued, is too short, or when caching costs more than it saves
 * for one write and one read.
 */
export function autoCached(request: Readonly<ChatRequest>, mapping: Mapping): Readonly<ChatRequest> {
  const { messages, tools } = request
  const { wires, supports, price } = mapping
  if (!wires.get('chat')?.cacheMarks || !supports.has('prompt_cache') || !price) return request
  const goesOn = Boolean(tools?.length) || messages.some(({ role }) => role === 'assistant')
  if (!goesOn || isMarked(request)) return request
  const sizes = sizesOf(request)
  if (!pays(price, estimateTokens(sizes.at(-1)!))) return request
  const least = mapping.minCacheableTokens ?? MIN_CACHEABLE_TOKENS
  const isWorth = (place: number) => place >= 0 && estimateTokens(sizes[place + 1]!) >= least
  const places = new Set(placesIn(messages).filter(isWorth))
  const tool = estimateTokens(sizes[0]!) >= least ? tools!.findLastIndex(({ type }) => type === 'function') : -1
  if (places.size === 0 && tool < 0) return request
  const marked: ChatRequest = Object.assign({}, request, {
    messages: messages.map((message, place) => (places.has(place) ? markedMessage(message) : message)),
    auto_cached: true,
  })
  if (tool >= 0) marked.tools = tools!.map((given, place) => (place === tool ? markedTool(given) : given))
  return marked
}

/** Whether one write and one read of the cache cost no more than two plain reads. */
function pays(price: Price, tokens: number): boolean {
  const { prompt, input_cache_read: read, input_cache_write: write } = ratesFor(price, tokens)
  return prompt !== undefined && read !== undefined && write !== undefined && read + write < 2n * prompt
}

function isMarked({ messages, tools }: Readonly<ChatRequest>): boolean {
  const inParts = ({ content }: Message) =>
    Array.isArray(content) && content.some(part => 'cache_control' in part && part.cache_control)
  return (
    messages.some(message => message.tool_result_cache_control || inParts(message)) ||
    tools?.some(tool => tool.type === 'function' && tool.cache_control) === true
  )
}

/** Bytes up to the end of the tools, and up to the end of each message. */
function sizesOf({ tools, messages }: Readonly<ChatRequest>): number[] {
  let sum = tools?.length ? jsonSize(tools) : 0
  const sizes = [sum]
  for (const { content, tool_calls: calls } of messages) {
    if (typeof content === 'string') sum += textSize(content)
    else for (const part of content ?? []) sum += part.type === 'text' ? textSize(part.text) : 0
    for (const call of calls ?? []) sum += call.type === 'function' ? textSize(call.function.arguments) : 0
    sizes.push(sum)
  }
  return sizes
}

/** Last leading system message, end of the turn before the last answer, and last message. */
function placesIn(messages: readonly Message[]): number[] {
  const isSystem = ({ role }: Message) => role === 'system' || role === 'developer'
  const first = messages.findIndex(message => !isSystem(message))
  const last = messages.findLastIndex(({ role }) => role === 'user' || role === 'tool')
  const answer = messages.slice(0, Math.max(last, 0)).findLastIndex(({ role }) => role === 'assistant')
  const before = messages.slice(0, Math.max(answer, 0)).findLastIndex(({ role }) => role === 'user' || role === 'tool')
  return [first - 1, before, last]
}

/** The message with a mark after its last text. */
export function markedMessage(message: Message, mark = MARK): Message {
  if (message.role === 'tool') return Object.assign({}, message, { tool_result_cache_control: mark })
  const { content } = message
  const parts: ContentPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : [...(content ?? [])]
  const place = parts.findLastIndex(part => part.type === 'text' && part.text !== '')
  if (place < 0) return message
  parts[place] = Object.assign({}, parts[place], { cache_control: mark })
  return Object.assign({}, message, { content: parts })
}

const markedTool = (tool: Tool): Tool => Object.assign({}, tool, { cache_control: MARK })
