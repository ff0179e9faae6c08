/** Chat requests for providers: values that clients held are unsealed, and false seals removed. */
import type { ChatRequest, ContentPart, Message, ToolCall } from '../core/chat-request.ts'
import type { SealCheck } from '../core/seals.ts'

/** Replaces a signature without a valid seal: it belongs to no provider. */
export const UNSEALED = ''

/** Returns the same request when it contains no seal. Drops values that do not verify, not their messages. */
export function unsealed(request: ChatRequest, seals: SealCheck): ChatRequest {
  const messages = mapped(request.messages, message => unsealedMessage(message, seals))
  return messages === request.messages ? request : { ...request, messages }
}

function unsealedMessage(message: Message, seals: SealCheck): Message {
  const { content, reasoning_details: details, tool_calls: calls, provider_native_blocks: blocks } = message
  const parts = Array.isArray(content) ? mapped(content, part => unsealedVendor(part, seals)) : content
  const made = calls && mapped(calls, call => unsealedVendor(call, seals))
  if (parts === content && made === calls && !details && !blocks) return message
  const open: Message = { ...message }
  if (parts !== content) open.content = parts
  if (made !== calls) open.tool_calls = made
  if (details) open.reasoning_details = details.map(detail => unsealedDetail(detail, seals))
  if (blocks) open.provider_native_blocks = blocks.flatMap(block => (seals.block(block) as typeof block) ?? [])
  return open
}

type Detail = NonNullable<Message['reasoning_details']>[number]

function unsealedDetail(detail: Detail, seals: SealCheck): Detail {
  const { signature, data } = detail
  const open = { ...detail }
  if (typeof signature === 'string') open.signature = seals.value(signature) ?? UNSEALED
  if (typeof data === 'string') open.data = seals.value(data) ?? UNSEALED
  return open
}

/** A call or part with a signature in `extra_content`. */
function unsealedVendor<T extends ToolCall | ContentPart>(holder: T, seals: SealCheck): T {
  const { extra_content: extra } = holder as { extra_content?: ToolCall['extra_content'] }
  const signature = extra?.vendor?.thought_signature
  if (typeof signature !== 'string') return holder
  const vendor = { ...extra!.vendor, thought_signature: seals.value(signature) ?? UNSEALED }
  return { ...holder, extra_content: { ...extra, vendor } }
}

/** Returns the same list when nothing changes. */
function mapped<T>(list: T[], change: (item: T) => T): T[] {
  let made: T[] | undefined
  for (let index = 0; index < list.length; index++) {
    const item = list[index]!
    const changed = change(item)
    if (changed === item) continue
    made ??= [...list]
    made[index] = changed
  }
  return made ?? list
}
