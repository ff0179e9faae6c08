/** A Responses body for providers of the same wire. */
import { isObject, type Json, listIn, textIn } from '../../core/json.ts'
import type { SealCheck } from '../../core/seals.ts'
import { Count } from '../../core/shape.ts'
import type { NativeRequest } from '../../core/translator.ts'
import { carried } from '../carried-reasoning.ts'

/** Name of the provider wire. */
export const WIRE = 'openai.responses'

/** Tools that the client runs; the provider runs all others. */
const CLIENT = /^(?:function|custom|namespace|local_shell|apply_patch|computer.*)$/

/**
 * Items keep their places. In place of its encrypted content a reasoning item has `carried: {details, native}`, of what
 * this gateway sealed for the organization; without such content it has none. `values`: those of the body.
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

function opened({ encrypted_content: sealed }: Json, seals: SealCheck | undefined, count: Count): Json {
  const found = typeof sealed === 'string' ? carried(sealed, count) : undefined
  if (!found) return { type: 'reasoning' }
  const details = (found.details ?? []).flatMap(({ format, data }) => {
    const open = data == null || !seals ? data : seals.value(data)
    return open == null ? [] : [{ format, data: open }]
  })
  const native = (found.native ?? []).flatMap(block => (seals ? (seals.block(block) ?? []) : block))
  return { type: 'reasoning', carried: { details, native } }
}
