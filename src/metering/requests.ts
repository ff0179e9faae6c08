/** The requests to its target that stand for an exchange: how many there are, and what they cause beside their prompt. */

import type { ChatRequest } from '../core/chat-request.ts'
import type { Exchange } from '../core/exchange.ts'
import { isCountedAhead } from '../core/offer.ts'
import type { FanOut } from '../core/translator.ts'
import type { Axis, Usage } from '../core/usage.ts'

/** Returns the fan-out of an exchange into several requests; undefined when it is one request. */
function fanOutOf({ request, target, operation }: Exchange): FanOut | undefined {
  if (!request || !target) return undefined
  const { fanOut: own } = operation
  if (own && own.count(request, target) > 1) return own
  return target.translator.fanOut
}

/** How many requests to its target stand for an exchange. */
export const requestsOf = (ex: Exchange): number => fanOutOf(ex)?.count(ex.request!, ex.target!) ?? 1

/** How often the prompt of an exchange is sent to its target in the place of once. */
export const repeatsOf = (ex: Exchange): number => (fanOutOf(ex)?.repeats ? requestsOf(ex) : 1)

/** Returns the usage besides the prompt that the requests of an exchange may cause. The exchange has a target. */
export function extrasOf(ex: Exchange): Usage {
  const { request, target, operation } = ex
  const extras: Usage = { ...operation.extras?.(request!, target!.mapping) }
  if (extras.image_input) extras.image_input *= repeatsOf(ex)
  return extras
}

/** False where the model makes images or sound alone. */
export const writesText = ({ target }: Exchange): boolean => target?.mapping.model.output.includes('text') !== false

/** Whether its model may call tools, and so write arguments of any shape that the caller has it write. */
export const mayCallTools = ({ request, input: { native } }: Exchange): boolean =>
  hasEntries((request as Partial<ChatRequest> | undefined)?.tools) || hasEntries(native?.body.tools)

const hasEntries = (value: unknown): boolean => Array.isArray(value) && value.length > 0

/** Whether the request holds content whose size is not known before its provider has read it. */
export const isUnmeasured = ({ operation, request }: Exchange): boolean =>
  request !== undefined && operation.unmeasured?.(request) !== undefined

/** `usage` with what more such content may come to, in a prompt no longer than its model's context; itself without any. */
export function withUnmeasured(ex: Exchange, usage: Usage): Usage {
  const { mapping } = ex.target!
  const more = ex.request && ex.operation.unmeasured?.(ex.request, mapping)
  if (!more) return usage
  const all: Usage = { ...usage }
  for (const axis in more) all[axis as Axis] = (all[axis as Axis] ?? 0) + more[axis as Axis]!
  const { contextLength: longest } = mapping
  if (all.prompt !== undefined && longest !== undefined) {
    all.prompt = Math.max(usage.prompt ?? 0, Math.min(all.prompt, longest * repeatsOf(ex)))
  }
  if (all.input_audio !== undefined) all.input_audio = Math.min(all.input_audio, all.prompt ?? all.input_audio)
  return all
}

/**
 * False for answers that their provider makes whole, though a client may get them as a stream. What is bytes comes in pieces
 * whatever its mapping supports.
 */
export function comesInPieces(ex: Exchange): boolean {
  const { streaming, target, outbound } = ex
  const { translator, mapping } = target!
  const isWhole = outbound.parts !== undefined || outbound.output?.whole || translator.bridged
  return streaming && !isWhole && (mapping.supports.has('streaming') || isMeasured(ex))
}

/** Whether the usage is measured from the bytes as they arrive. */
const isMeasured = ({ target, operation }: Exchange): boolean =>
  operation.measure !== undefined && target!.translator.bytes !== undefined && !isCountedAhead(target)
