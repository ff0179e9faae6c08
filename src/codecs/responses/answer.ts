/** The response object around the items. */

import type { Exchange } from '../../core/exchange.ts'
import type { Json } from '../../json/json.ts'
import type { GatewayError } from '../../lib/error.ts'
import { answerIdOf, answerModelOf, costDetails, metadataOf, usageInfo, usdOf } from '../accounting.ts'
import { isOverflow } from '../overflow.ts'
import { responseId } from './open-item.ts'

/** Fields of the request that the answer repeats, with the wire's defaults. */
const REPEATED: Readonly<Json> = {
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  user: null,
}
/** Maximum characters of their JSON, which a stream repeats three times; a longer request gets the defaults. */
const MAX_REPEATED_CHARACTERS = 256 * 1024
const DEFAULTS = JSON.stringify(REPEATED)

/** A replay that is stored is a response of its own. */
export const idOf = (ex: Exchange): string => (ex.input.stored?.isStored ? ex.logId : answerIdOf(ex))

/** How a response ends. */
export interface Ending {
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed'
  readonly reason?: 'max_output_tokens' | 'content_filter' | undefined
  readonly error?: GatewayError | undefined
  /** Unix time in seconds; undefined for an answer that is not completed. */
  readonly completedAt?: number | undefined
}

/** Writes the response object of one answer, at each of its stages. */
export class ResponseObject {
  readonly #ex: Exchange
  /** JSON of an object. */
  readonly #repeated: string

  constructor(ex: Exchange) {
    this.#ex = ex
    this.#repeated = repeatedOf(ex.input.native?.body ?? {})
  }

  /** JSON text. `output`: that of the list of items. */
  at({ status, reason, error, completedAt }: Ending, output = '[]'): string {
    const ex = this.#ex
    const isOver = status !== 'in_progress'
    const head = JSON.stringify({
      id: responseId(idOf(ex)),
      object: 'response',
      created_at: Math.floor(ex.at / 1000),
      status,
      background: false,
      completed_at: completedAt ?? null,
      error: error ? errorOf(error) : null,
      incomplete_details: reason ? { reason } : null,
      model: answerModelOf(ex),
    })
    const rest = JSON.stringify({
      previous_response_id: ex.input.stored?.previousId ?? null,
      service_tier: ex.answer.servedTier ?? ex.input.native?.body.service_tier ?? 'auto',
      store: ex.input.stored?.isStored ?? false,
      usage: isOver ? usageOf(ex) : null,
      gateway: isOver ? metadataOf(ex) : undefined,
    })
    return `${head.slice(0, -1)},"output":${output},${rest.slice(1, -1)},${this.#repeated.slice(1)}`
  }
}

function repeatedOf(given: Readonly<Json>): string {
  // Serializing text beyond the maximum would be wasted.
  if (typeof given.instructions === 'string' && given.instructions.length > MAX_REPEATED_CHARACTERS) return DEFAULTS
  const repeated: Json = {}
  for (const name in REPEATED) repeated[name] = given[name] ?? REPEATED[name]
  const json = JSON.stringify(repeated)
  return json.length > MAX_REPEATED_CHARACTERS ? DEFAULTS : json
}

/** The error with a code of the client's enumeration, or that by which clients find a prompt too long. */
function errorOf(error: GatewayError): Json {
  const { status, code, message } = error
  if (isOverflow(error)) return { code, message }
  if (status === 429 || code === 'upstream_rate_limited') return { code: 'rate_limit_exceeded', message }
  return { code: status >= 400 && status < 500 ? 'invalid_prompt' : 'server_error', message }
}

function usageOf(ex: Exchange): Json {
  const { usage } = ex
  const { prompt = 0, completion = 0, input_cache_write: written = 0, input_cache_write_1h: longer = 0 } = usage
  return {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: usage.input_cache_read ?? 0, cache_write_tokens: written + longer },
    output_tokens: completion,
    output_tokens_details: { reasoning_tokens: usage.internal_reasoning ?? 0 },
    total_tokens: prompt + completion,
    cost: usdOf(ex),
    cost_details: costDetails(ex.meter.cost, ex),
    info: usageInfo(ex),
  }
}
