/**
 * What a provider wants back of its reasoning, in one opaque text that clients send back as it came, as the signature of
 * a part or encrypted content, and often nothing else of the reasoning. Base64 of a JSON object that begins with `mgw`.
 */
import type { ReasoningDetail } from '../core/fold.ts'
import { isObject, type Json, listIn } from '../core/json.ts'
import type { Message } from '../core/ops.ts'
import { type Count, Shape } from '../core/shape.ts'

const START = '{"mgw":1'
const ENCODED_START = Buffer.from(START).toString('base64').slice(0, 10)
/** Of a signature, in levels of its JSON: native blocks may be deep, and stand in a body. */
const LEVEL = 5
const VALUES = 100_000

/** Seals in it verify by themselves: whatever a client makes of the rest is the client's own word. */
export interface Carried {
  /** Reasoning in words, where the details do not have it. */
  readonly text?: string | undefined
  readonly details?: readonly ReasoningDetail[] | undefined
  readonly native?: readonly Json[] | undefined
  /** Of the call that it stands with. */
  readonly signature?: string | undefined
}

export const carry = ({ text, details, native, signature }: Carried): string =>
  Buffer.from(JSON.stringify({ mgw: 1, text, details, native, signature })).toString('base64')

/** The inverse; undefined for what was not made here. `count` is of the values that the body holds. */
export function carried(value: string, count: Count): Carried | undefined {
  if (!value.startsWith(ENCODED_START)) return undefined
  const json = Buffer.from(value, 'base64').toString('utf8')
  if (!json.startsWith(START)) return undefined
  const shape = new Shape({ values: VALUES }, count, LEVEL)
  shape.add(json)
  if (shape.excess) return undefined
  let parsed: unknown
  try {
    parsed = JSON.parse(json)
  } catch {
    return undefined
  }
  if (!isObject(parsed)) return undefined
  const { text, signature, details, native } = parsed
  return {
    text: typeof text === 'string' ? text : undefined,
    signature: typeof signature === 'string' ? signature : undefined,
    details: listIn(details).filter(isDetail),
    native: listIn(native).filter(isObject),
  }
}

const TEXTS = ['type', 'text', 'signature', 'data', 'format'] as const

const isDetail = (value: unknown): value is ReasoningDetail =>
  isObject(value) && TEXTS.every(name => value[name] === undefined || typeof value[name] === 'string')

/** Adds to a turn what a part of it carries. */
export function restore(message: Message, { text, details, native }: Carried): void {
  const said = text ?? details?.map(detail => detail.text ?? '').join('') ?? ''
  if (said !== '') message.reasoning = (message.reasoning ?? '') + said
  for (const detail of details ?? []) {
    message.reasoning_details ??= []
    message.reasoning_details.push(detail)
  }
  for (const block of native ?? []) {
    if (typeof block.type !== 'string') continue
    message.provider_native_blocks ??= []
    message.provider_native_blocks.push(block as Json & { type: string })
  }
}
