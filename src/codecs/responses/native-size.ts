/** Bytes of a Responses body that its providers read, and a chat request does not hold. */
import type { ChatRequest } from '../../core/chat-request.ts'
import { isObject, type Json, listIn } from '../../json/json.ts'
import { nativeSettings } from '../native-size.ts'

/** Items whose contents a chat request holds. */
const READ: ReadonlySet<unknown> = new Set([
  undefined,
  'message',
  'function_call',
  'custom_tool_call',
  'tool_search_call',
  'function_call_output',
  'custom_tool_call_output',
  'image_generation_call',
])

/** `request` is the chat form of `body`: what searches found stands among its tools, once. */
export function nativeSize({ tools, text, input }: Json, request: ChatRequest): number {
  const settings = [tools, text]
  for (const item of listIn(input)) {
    if (!isObject(item)) continue
    if (item.type === 'tool_search_output') settings.push(item.tools)
    else if (item.type === 'reasoning') settings.push(listIn(item.content))
    else if (!READ.has(item.type)) settings.push(item)
  }
  return nativeSettings(settings, request)
}
