/**
 * Reasoning that a provider requires back, in one opaque text that clients return unchanged as the signature of a part
 * or as encrypted content, often without any other reasoning. Base64 of a JSON object that begins with `mgw`.
 */

import type { Message } from '../core/chat-request.ts'
import { isObject, type Json, jsonIn, listIn } from '../json/json.ts'
import { type Count, Shape } from '../json/shape.ts'
import type { ReasoningDetail } from '../wire/fold.ts'

const START = '{"mgw":1'
const ENCODED_START = Buffer.from(START).toString('base64').slice(0, 10)
/** JSON levels of a signature: native blocks may be deep, within a body. */
const BODY_LEVEL = 5
const MAX_SIGNED_VALUES = 100_000

/** Seals in it verify by themselves; a client may modify the rest. */
export interface Carried {
  /** Reasoning text, when the details do not contain it. */
  readonly text?: string | undefined
  readonly details?: readonly ReasoningDetail[] | undefined
  readonly native?: readonly Json[] | undefined
  /** Signature of the accompanying call. */
  readonly signature?: string | undefined
}

/** The opaque text; `carried` reads it. */
export const carry = ({ text, details, native, signature }: Carried): string =>
  Buffer.from(JSON.stringify({ mgw: 1, text, details, native, signature })).toString('base64')

/** The inverse; undefined for a text made elsewhere. `count` counts the body's values. */
export function carried(value: string, count: Count): Carried | undefined {
  if (!value.startsWith(ENCODED_START)) return undefined
  const json = Buffer.from(value, 'base64').toString('utf8')
  if (!json.startsWith(START)) return undefined
  const shape = new Shape({ values: MAX_SIGNED_VALUES }, count, BODY_LEVEL)
  shape.add(json)
  if (shape.excess) return undefined
  const parsed = jsonIn(json)
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

/** Adds the content carried by a part to its turn. */
export function restore(message: Message, { text, details, native }: Carried): void {
  const reasoning = text ?? details?.map(detail => detail.text ?? '').join('') ?? ''
  if (reasoning !== '') message.reasoning = (message.reasoning ?? '') + reasoning
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
