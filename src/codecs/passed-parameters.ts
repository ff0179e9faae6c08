/** Chat parameters that the interface does not list, for projects that pass them to wires that support them. */

import type { ChatBody, PassedParameters } from '../core/chat-request.ts'
import { isObject } from '../json/json.ts'

/** OpenAI's limit. */
const MAX_TOP_LOGPROBS = 20

const isCount = (value: unknown, from: number): value is number => Number.isSafeInteger(value) && Number(value) >= from
const isWord = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** The well-formed ones; others are ignored. */
export function passedParameters(body: Pick<ChatBody, keyof PassedParameters>): PassedParameters {
  const { seed, logprobs, top_logprobs: top, logit_bias: bias, top_k: k } = body
  const passed: PassedParameters = {}
  const stop = stopsOf(body.stop)
  if (stop.length > 0) passed.stop = stop
  if (Number.isSafeInteger(seed)) passed.seed = seed as number
  if (typeof logprobs === 'boolean') passed.logprobs = logprobs
  // Without `logprobs` it is meaningless, and rejected.
  if (logprobs === true && isCount(top, 0) && top <= MAX_TOP_LOGPROBS) passed.top_logprobs = top
  if (isBias(bias)) passed.logit_bias = bias
  if (isCount(k, 1)) passed.top_k = k
  return passed
}

function stopsOf(stop: unknown): string[] {
  if (isWord(stop)) return [stop]
  return Array.isArray(stop) && stop.every(word => typeof word === 'string') ? stop.filter(isWord) : []
}

const isBias = (value: unknown): value is Record<string, number> =>
  isObject(value) && Object.values(value).every(bias => typeof bias === 'number')
