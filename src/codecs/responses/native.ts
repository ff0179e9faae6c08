/** A Responses body for providers of the same wire. */

import type { ChatRequest } from '../../core/chat-request.ts'
import { IMAGE_PROMPT_TOKENS } from '../../core/media.ts'
import type { SealCheck } from '../../core/seals.ts'
import type { NativeRequest } from '../../core/wire.ts'
import { isObject, type Json, listIn, textIn } from '../../json/json.ts'
import { Count } from '../../json/shape.ts'
import { carried } from '../carried-reasoning.ts'
import { nativeSettings } from '../native-body.ts'

/** Name of the provider wire. */
export const WIRE = 'openai.responses'

/** Tools that the client runs; the provider runs all others. */
const CLIENT = /^(?:function|custom|namespace|local_shell|apply_patch|computer.*)$/

/**
 * Items keep their places. A reasoning item is `carried: {details, native}`, of what this gateway sealed for the
 * organization, else the text that the client holds of it, else empty. `values`: those of the body.
 */
export function nativeOf(
  body: Json,
  seals: SealCheck | undefined,
  values: number,
  only: string | undefined,
  size: number,
): NativeRequest {
  const { input, tools } = body
  const added = listIn(input).flatMap(item => (isObject(item) ? listIn(item.tools) : []))
  const loops = [...listIn(tools), ...added].some(tool => isObject(tool) && !CLIENT.test(textIn(tool.type) ?? ''))
  if (!Array.isArray(input)) return { wire: WIRE, body, only, loops, size }
  const count = new Count(values)
  const items = input.map((item: unknown) =>
    isObject(item) && item.type === 'reasoning' ? opened(item, seals, count) : item,
  )
  return { wire: WIRE, body: Object.assign({}, body, { input: items }), only, loops, size }
}

function opened(item: Json, seals: SealCheck | undefined, count: Count): Json {
  const { encrypted_content: sealed, carried: _, ...plain } = item
  const found = typeof sealed === 'string' ? carried(sealed, count) : undefined
  // Encrypted content of others cannot be verified.
  if (!found) return listIn(plain.content).length > 0 ? plain : { type: 'reasoning' }
  const details = (found.details ?? []).flatMap(({ format, data }) => {
    const open = data == null || !seals ? data : seals.value(data)
    return open == null ? [] : [{ format, data: open }]
  })
  const native = (found.native ?? []).flatMap(block => (seals ? (seals.block(block) ?? []) : block))
  return { type: 'reasoning', carried: { details, native } }
}

/** Items whose contents a chat request holds. */
const READ: ReadonlySet<unknown> = new Set([
  undefined,
  'message',
  'function_call',
  'custom_tool_call',
  'tool_search_call',
  'function_call_output',
  'custom_tool_call_output',
])
/** Bytes for which a picture that was made earlier counts, at four bytes a token. */
const PICTURE_BYTES = 4 * IMAGE_PROMPT_TOKENS

/** `request` is the chat form of `body`: what searches found stands among its tools, once. */
export function nativeSize({ tools, text, input }: Json, request: ChatRequest): number {
  const settings = [tools, text]
  let pictures = 0
  for (const item of listIn(input)) {
    if (!isObject(item)) continue
    if (item.type === 'tool_search_output') settings.push(item.tools)
    else if (item.type === 'reasoning') settings.push(listIn(item.content))
    else if (item.type === 'image_generation_call') {
      if (textIn(item.result) !== undefined) pictures++
    } else if (!READ.has(item.type)) settings.push(item)
  }
  return nativeSettings(settings, request) + pictures * PICTURE_BYTES
}
