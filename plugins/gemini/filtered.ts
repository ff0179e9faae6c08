/** Prompts and answers that the provider blocked for their content (docs/contract.md#image-wires). */
import { isObject, type Json, textIn } from '../../src/plugin.ts'

/** Other reasons do not concern the content. */
const FILTERED = /SAFETY|PROHIBITED_CONTENT|RECITATION|BLOCKLIST|SPII|MODEL_ARMOR|JAILBREAK/

/** Whether a finish reason says that content was blocked. */
export const isFiltered = (reason: string): boolean => FILTERED.test(reason)

/** Why the prompt was blocked; undefined when it was not. */
export function blockedBy(feedback: unknown): string | undefined {
  if (!isObject(feedback) || feedback.blockReason === undefined) return undefined
  return textIn(feedback.blockReasonMessage) ?? `The provider refused the prompt: ${textIn(feedback.blockReason)}.`
}

/** Why a candidate was blocked; undefined when it was not. */
export function filteredBy({ finishReason, finishMessage }: Json): string | undefined {
  const reason = textIn(finishReason) ?? ''
  return isFiltered(reason) ? (textIn(finishMessage) ?? `The provider left the answer out: ${reason}.`) : undefined
}
