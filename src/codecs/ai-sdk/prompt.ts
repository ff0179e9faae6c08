/** The prompt as chat messages. */

import type { ContentPart, Message, ToolCall } from '../../core/chat-request.ts'
import { isObject, type Json, listIn, objectIn, textIn } from '../../json/json.ts'
import type { Count } from '../../json/shape.ts'
import { errors } from '../../lib/error.ts'
import { carried, restore } from '../carried-reasoning.ts'
import { compact, textPart } from '../chat-parts.ts'
import { ToolJson } from '../tool-json.ts'
import { filePart, resultPart } from './files.ts'
import { cacheControlOf, ownOf } from './options.ts'

type Detail = NonNullable<Message['reasoning_details']>[number] & { block_index?: number }
type Note = (message: string) => void

/**
 * The messages, and for each its index in the prompt. Throws a 400 that names what cannot be read. `note` is called for
 * each part that no chat message can carry; `count` counts the values of the body.
 */
export function messagesOf(prompt: unknown, count: Count, note: Note): { messages: Message[]; origins: number[] } {
  const json = new ToolJson()
  if (!Array.isArray(prompt)) throw errors.invalidField('prompt', 'must be an array of messages')
  const messages: Message[] = []
  const origins: number[] = []
  for (const [i, message] of (prompt as unknown[]).entries()) {
    const at = `prompt[${i}]`
    if (!isObject(message)) throw errors.invalidField(at, 'must be an object')
    for (const made of messageOf(message, at, count, json, note)) {
      messages.push(made)
      origins.push(i)
    }
  }
  return { messages, origins }
}

function messageOf(message: Json, at: string, count: Count, json: ToolJson, note: Note): Message[] {
  const { role, content } = message
  if (role === 'system') {
    if (typeof content !== 'string') throw errors.invalidField(`${at}.content`, 'must be a string')
    return [{ role: 'system', content: compact([textPart(content, cacheControlOf(message))]) }]
  }
  if (!Array.isArray(content)) throw errors.invalidField(`${at}.content`, 'must be an array')
  const wrong = content.findIndex(part => !isObject(part) || typeof part.type !== 'string')
  if (wrong >= 0) throw errors.invalidField(`${at}.content[${wrong}]`, 'must have a type')
  const parts = withCacheControl(content as Json[], message)
  switch (role) {
    case 'user':
      return userMessage(parts, at, note)
    case 'assistant':
      return assistantMessage(parts, at, count, json, note)
    case 'tool':
      return parts.flatMap((part, i) =>
        part.type === 'tool-result' ? resultMessage(part, `${at}.content[${i}]`, json, note) : [],
      )
    default:
      throw errors.invalidField(`${at}.role`, 'must be system, user, assistant or tool')
  }
}

/** A mark on a message is one on its last part. */
function withCacheControl(parts: Json[], message: Json): Json[] {
  const last = parts.at(-1)
  if (!last || !cacheControlOf(message) || cacheControlOf(last)) return parts
  const { anthropic } = message.providerOptions as Json
  const own = objectIn(last.providerOptions)
  return parts.with(-1, { ...last, providerOptions: { ...own, anthropic } })
}

function textOf(part: Json, at: string): string {
  if (typeof part.text === 'string') return part.text
  throw errors.invalidField(`${at}.text`, 'must be a string')
}

function userMessage(content: readonly Json[], at: string, note: Note): Message[] {
  const parts: ContentPart[] = []
  for (const [i, part] of content.entries()) {
    const where = `${at}.content[${i}]`
    if (part.type === 'text') parts.push(textPart(textOf(part, where), cacheControlOf(part)))
    else {
      const made = part.type === 'file' ? filePart(part) : undefined
      if (made) parts.push(made)
      else note(`${where}: a part of type "${String(part.type).slice(0, 50)}" with this kind of data is not supported.`)
    }
  }
  return parts.length === 0 ? [] : [{ role: 'user', content: compact(parts) }]
}

function assistantMessage(content: readonly Json[], at: string, count: Count, json: ToolJson, note: Note): Message[] {
  const parts: ContentPart[] = []
  const calls: ToolCall[] = []
  const details: Detail[] = []
  const kept: Message = { role: 'assistant' }
  let reasoning = ''
  for (const [i, part] of content.entries()) {
    const where = `${at}.content[${i}]`
    const { carried: sent } = ownOf(part)
    const carries = typeof sent === 'string' ? carried(sent, count) : undefined
    if (carries) restore(kept, carries)
    if (part.type === 'text') {
      const text = textOf(part, where)
      if (text !== '') parts.push(textPart(text, cacheControlOf(part)))
    } else if (part.type === 'reasoning') {
      const text = textOf(part, where)
      const detail = detailOf(text, ownOf(part))
      reasoning += text
      if (detail) details.push(detail)
    } else if (part.type === 'tool-call') {
      // A call that the provider ran itself is not the client's.
      if (part.providerExecuted !== true) calls.push(callOf(part, where, json))
    } else if (part.type !== 'tool-result') {
      const made = part.type === 'file' ? filePart(part) : undefined
      if (made?.type === 'image_url') parts.push(made)
      else note(`${where}: a part of type "${String(part.type).slice(0, 50)}" of an earlier answer is not supported.`)
    }
  }
  const { provider_native_blocks: native } = kept
  if (parts.length === 0 && calls.length === 0 && reasoning === '' && details.length === 0 && !native) return []
  const message: Message = { role: 'assistant', content: parts.length === 0 ? null : compact(parts) }
  if (message.content === null && calls.length === 0) message.content = ''
  if (reasoning !== '') message.reasoning = reasoning
  if (details.length > 0) message.reasoning_details = details
  if (calls.length > 0) message.tool_calls = calls
  if (native) message.provider_native_blocks = native
  return [message]
}

/** Undefined for reasoning that providers accept back only as text. */
function detailOf(text: string, { format, signature, data, block }: Json): Detail | undefined {
  if (typeof format !== 'string' && typeof signature !== 'string' && typeof data !== 'string') return undefined
  const detail: Detail =
    typeof data === 'string' ? { type: 'reasoning.encrypted', data } : { type: 'reasoning.text', text }
  if (typeof signature === 'string') detail.signature = signature
  if (typeof format === 'string') detail.format = format
  if (Number.isSafeInteger(block)) detail.block_index = Number(block)
  return detail
}

function callOf(part: Json, at: string, json: ToolJson): ToolCall {
  const { signature } = ownOf(part)
  const call = { name: required(part, 'toolName', at), arguments: json.argumentsOf(part.input ?? {}, `${at}.input`) }
  return {
    id: idIn(part, at),
    type: 'function',
    function: call,
    ...(typeof signature === 'string' && { extra_content: { vendor: { thought_signature: signature } } }),
  }
}

const required = (part: Json, name: string, at: string): string => {
  const text = textIn(part[name])
  if (text) return text
  throw errors.invalidField(`${at}.${name}`, 'must be a string that is not empty')
}
const idIn = (part: Json, at: string) => required(part, 'toolCallId', at)

function resultMessage(part: Json, at: string, json: ToolJson, note: Note): Message {
  const output = isObject(part.output) ? part.output : undefined
  if (!output) throw errors.invalidField(`${at}.output`, 'is required')
  const message: Message = { role: 'tool', tool_call_id: idIn(part, at), content: contentOf(output, at, json, note) }
  if (output.type === 'error-text' || output.type === 'error-json') message.is_error = true
  const control = cacheControlOf(part) ?? cacheControlOf(output)
  if (control) message.tool_result_cache_control = control
  return message
}

function contentOf(output: Json, at: string, json: ToolJson, note: Note): string | ContentPart[] {
  const { type, value, reason } = output
  switch (type) {
    case 'text':
    case 'error-text':
      return textIn(value) ?? ''
    case 'json':
    case 'error-json':
      return json.resultOf(value ?? null, `${at}.output.value`)
    case 'execution-denied':
      return textIn(reason) || 'Tool execution was denied.'
    case 'content': {
      const parts: ContentPart[] = []
      for (const [i, item] of listIn(value).entries()) {
        const made = isObject(item) ? resultPart(item) : undefined
        if (made) parts.push(made)
        else note(`${at}.output.value[${i}]: this item is not supported.`)
      }
      return compact(parts)
    }
    default: {
      const where = `${at}.output.type`
      throw errors.invalidField(where, 'must be text, json, error-text, error-json, execution-denied or content')
    }
  }
}
