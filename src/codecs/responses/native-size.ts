/** Bytes of a Responses body that its providers read, and a chat request does not hold. */
import type { ChatRequest } from '../../core/chat-request.ts'
import { isObject, type Json, listIn } from '../../core/json.ts'
import { nativeSettings } from '../native-size.ts'

/** `request` is the chat form of `body`: what searches found stands among its tools, once. */
export function nativeSize({ tools, text, input }: Json, request: ChatRequest): number {
  const settings = [tools, text]
  for (const item of listIn(input)) {
    if (isObject(item) && item.type === 'tool_search_output') settings.push(item.tools)
  }
  return nativeSettings(settings, request)
}
