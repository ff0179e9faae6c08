/** An assistant turn of a Messages body as a chat message. */
import type { ContentPart, Message, ToolCall } from '../../core/chat-request.ts'
import { textKey } from '../../json/text-key.ts'
import { compact } from '../chat-parts.ts'
import type { ToolJson } from '../tool-json.ts'
import { type Carried, carried, NATIVE_FORMAT } from './carried.ts'
import { partOf } from './parts.ts'
import type { Block, MessageTurn } from './schema.ts'

type Detail = NonNullable<Message['reasoning_details']>[number] & { block_index?: number }
type Native = NonNullable<Message['provider_native_blocks']>[number]

/** Undefined for a turn left empty, because it contained only a provider's private content. */
export function assistantMessage({ content }: MessageTurn, at: string, json: ToolJson): Message | undefined {
  if (typeof content === 'string') return { role: 'assistant', content }
  const parts: ContentPart[] = []
  const calls: ToolCall[] = []
  const details: Detail[] = []
  const native: Native[] = []
  const seals = new Map<string, string>()
  let reasoning = ''
  let opens = true
  for (const [i, block] of content.entries()) {
    switch (block.type) {
      case 'thinking': {
        reasoning += block.thinking
        const other = carried(block.signature ?? '')
        if (other?.what === 'call') seals.set(textKey(other.place), other.sealed)
        else if (other) addDetails(details, carriedDetail(block.thinking, other), opens)
        else addDetails(details, thinkingDetail(block, i), opens)
        break
      }
      case 'redacted_thinking':
        addDetails(details, hiddenDetail(block.data, i), opens)
        break
      case 'tool_use':
        opens = false
        calls.push(callOf(block, `${at}[${i}].input`, json))
        break
      default:
        opens = false
        if (isForeign(block)) native.push(block)
        else for (const part of partOf(block, `${at}[${i}]`)) parts.push(part)
    }
  }
  for (const call of calls) sealCall(call, seals.get(textKey(call.id)))
  const compacted = compact(parts)
  const message: Message = { role: 'assistant', content: compacted === '' && calls.length > 0 ? null : compacted }
  if (reasoning !== '') message.reasoning = reasoning
  if (details.length > 0) message.reasoning_details = details
  if (calls.length > 0) message.tool_calls = calls
  if (calls.length > 0 && parts.length > 0) message.content_before_tool_calls = true
  if (native.length > 0) message.provider_native_blocks = native
  return compacted === '' && Object.keys(message).length === 2 ? undefined : message
}

/** A provider accepts its own thinking only at the start of the turn (docs/contract.md#messages). */
function addDetails(details: Detail[], detail: Detail | undefined, opens: boolean): void {
  if (detail && (opens || detail.format !== NATIVE_FORMAT)) details.push(detail)
}

/** Undefined for unsigned reasoning: its text suffices. */
function thinkingDetail({ thinking: text, signature }: { thinking: string; signature?: unknown }, index: number) {
  if (typeof signature !== 'string' || signature === '') return undefined
  const detail: Detail = { type: 'reasoning.text', text, signature, format: NATIVE_FORMAT, block_index: index }
  return detail
}

const hiddenDetail = (data: string, index: number): Detail => ({
  type: 'reasoning.encrypted',
  data,
  format: NATIVE_FORMAT,
  block_index: index,
})

/** Undefined for a plain text, which `reasoning` already contains. */
function carriedDetail(text: string, { what, format, place, sealed }: Carried): Detail | undefined {
  if (format === undefined && sealed === '') return undefined
  const detail: Detail =
    what === 'data'
      ? { type: 'reasoning.encrypted', data: sealed }
      : { type: 'reasoning.text', text: what === 'text' ? text : '' }
  if (what !== 'data' && sealed !== '') detail.signature = sealed
  if (format !== undefined) detail.format = format
  if (/^\d+$/.test(place)) detail.block_index = Number(place)
  return detail
}

/** A client limited to the wire's own fields returns the seal in a thinking block. */
function sealCall(call: ToolCall, sealed: string | undefined): void {
  if (sealed !== undefined) call.extra_content ??= { vendor: { thought_signature: sealed } }
}

function callOf(block: Extract<Block, { type: 'tool_use' }>, at: string, json: ToolJson): ToolCall {
  const { id, name, input, extra_content: extra } = block as typeof block & Pick<ToolCall, 'extra_content'>
  const signature = extra?.vendor?.thought_signature
  return {
    id,
    type: 'function',
    function: { name, arguments: json.argumentsOf(input, at) },
    ...(typeof signature === 'string' && { extra_content: { vendor: { thought_signature: signature } } }),
  }
}

/** A block of another wire, which this endpoint's answer marked with its provider. */
const isForeign = (block: { type: string }): block is Native =>
  typeof (block as { provider?: unknown }).provider === 'string'
