/** The size of a chat prompt, in bytes of UTF-8, from all texts that a wire may send. */
import type { ChatRequest, Message } from '../../core/chat-request.ts'
import { textSize, valueSize } from '../../core/usage.ts'
import { isWellFormed } from '../../json/json.ts'
import { weigh } from '../../json/size.ts'

/** Characters that separate messages or calls: the role, and the end. */
const ENVELOPE_CHARACTERS = 16
/** Characters of envelopes and ids that an estimate may leave out. */
const FREE_CHARACTERS = 64 * ENVELOPE_CHARACTERS

/** Without earlier reasoning, which most providers never get. */
export function promptSize({ messages, tools, response_format: format }: Readonly<ChatRequest>): number {
  let sum = 0
  let around = -FREE_CHARACTERS
  for (const message of messages) {
    around += ENVELOPE_CHARACTERS + textSize(message.tool_call_id ?? '')
    sum +=
      Math.max(contentOf(message), itemsOf(message)) + textSize(message.refusal ?? '') + textSize(message.name ?? '')
    for (const call of message.tool_calls ?? []) {
      around += ENVELOPE_CHARACTERS + textSize(call.id)
      sum +=
        call.type === 'function'
          ? textSize(call.function.name) + textSize(call.function.arguments)
          : textSize(call.custom.name) + textSize(call.custom.input)
    }
  }
  if (around > 0) sum += around
  if (tools?.length) sum += jsonSize(tools)
  if (format?.type === 'json_schema') sum += jsonSize(format.json_schema)
  return sum
}

/** Longer strings are not written to be measured, nor halves of characters, each of which takes 70 ns. */
const MAX_ENCODED_CHARACTERS = 4096

/** Characters up to which tools are encoded at once, which is faster for usual tools. */
const INLINE_CHARACTERS = 256 * 1024

/** The size of the JSON of what JSON can say; of what is not light, long strings without their escapes. */
export const jsonSize = (value: object): number =>
  weigh(value) < INLINE_CHARACTERS ? textSize(JSON.stringify(value)) : sizeOf(value)

function sizeOf(value: unknown): number {
  if (typeof value === 'string')
    return value.length < MAX_ENCODED_CHARACTERS && isWellFormed(value)
      ? textSize(JSON.stringify(value))
      : textSize(value) + 2
  if (typeof value !== 'object' || value === null) return String(value ?? null).length
  let sum = 1
  if (Array.isArray(value)) for (let at = 0; at < value.length; at++) sum += sizeOf(value[at]) + 1
  else {
    for (const name in value) {
      const member = (value as Record<string, unknown>)[name]
      if (member !== undefined) sum += sizeOf(name) + sizeOf(member) + 2
    }
  }
  return Math.max(2, sum)
}

function contentOf({ content }: Message): number {
  if (typeof content === 'string') return textSize(content)
  let sum = 0
  for (const part of content ?? []) {
    if (part.type === 'text') sum += textSize(part.text)
    else if (part.type === 'refusal') sum += textSize(part.refusal)
    else if (part.type === 'file') sum += textSize(part.file.filename ?? '')
  }
  return sum
}

/** Some wires send these in the place of the content. */
function itemsOf({ message_items: items }: Message): number {
  let sum = 0
  for (const { text } of items ?? []) sum += textSize(text)
  return sum
}

/** Earlier reasoning: one of the fields is sent, which usually hold the same. */
export function reasoningSize({ messages }: Readonly<ChatRequest>): number {
  let sum = 0
  for (const { role, reasoning, reasoning_content: content, reasoning_details: details } of messages) {
    if (role !== 'assistant') continue
    let detailed = 0
    for (const { text } of details ?? []) detailed += textSize(text ?? '')
    sum += Math.max(textSize(reasoning ?? ''), textSize(content ?? ''), detailed)
  }
  return sum
}

/** Approximate characters around each JSON value of a block. */
const VALUE_CHARACTERS = 8

/**
 * Counts content of earlier answers that only this provider reads: sealed reasoning, and blocks of its own tools. A
 * thought and its seal hold the same, so the longer one counts.
 */
export function sealedSize({ messages }: Readonly<ChatRequest>, provider: string): number {
  const start = `${provider}:`
  const own = (value: string | null | undefined) => (value?.startsWith(start) ? textSize(value) : 0)
  let sum = 0
  for (const { role, reasoning_details: details, provider_native_blocks: blocks, tool_calls: calls } of messages) {
    if (role !== 'assistant') continue
    for (const { text, signature, data } of details ?? []) {
      const sealed = Math.max(own(signature), own(data))
      if (sealed > 0) sum += Math.max(sealed, textSize(text ?? ''))
    }
    for (const block of blocks ?? [])
      if ('provider' in block && block.provider === provider) sum += valueSize(block, VALUE_CHARACTERS)
    for (const call of calls ?? []) sum += own(call.extra_content?.vendor?.thought_signature)
  }
  return sum
}
