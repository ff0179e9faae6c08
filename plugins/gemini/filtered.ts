/** Prompts and answers that the provider leaves out for what they would show or say (docs/contract.md#image-wires). */
import { isObject, type Json, textIn } from '../../src/plugin.ts'

/** Other reasons say nothing of the request. */
const FILTERED = /SAFETY|PROHIBITED_CONTENT|RECITATION|BLOCKLIST|SPII/

/** Why the prompt of an answer was refused; undefined for one that was not. */
export function blockedBy(feedback: unknown): string | undefined {
  if (!isObject(feedback) || feedback.blockReason === undefined) return undefined
  return textIn(feedback.blockReasonMessage) ?? `The provider refused the prompt: ${String(feedback.blockReason)}.`
}

/** Why a candidate was left out; undefined for one that ended otherwise. */
export function filteredBy({ finishReason, finishMessage }: Json): string | undefined {
  const reason = textIn(finishReason) ?? ''
  return FILTERED.test(reason) ? (textIn(finishMessage) ?? `The provider left the answer out: ${reason}.`) : undefined
}
