/** Encodes the canonical request to the target's wire. Only prepares: the terminal sends and decodes. */

import type { FilterFactory } from '../core/filter.ts'
import type { ChatRequest } from '../core/ops.ts'
import { s } from '../core/schema.ts'
import type { Target } from '../core/translator.ts'
import { bend } from './quirks.ts'

export const translate: FilterFactory<object> = {
  name: 'translate',
  options: s.object({}),
  needs: ['target'],
  gives: ['outbound'],
  create() {
    return {
      handle(ex, next) {
        const target = ex.target!
        const stream = ex.streaming && target.mapping.supports.has('streaming')
        const { translator } = target
        const input = accepted(ex.chat, target)
        const request =
          translator.native && ex.native?.wire === translator.native.wire
            ? translator.native.encode(ex.native.body, input, target, stream)
            : translator.encode(input, target, stream)
        bend(target.provider, request.body)
        ex.outbound = request
        return next()
      },
    }
  },
}

/** Parameters that only tune an answer: a mapping that lists its `parameters` is spared the others. */
const tuning = [
  'temperature',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'response_format',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning_effort',
  'effort',
  'verbosity',
  'service_tier',
  'user',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
] as const

function accepted(request: ChatRequest, { mapping: { parameters } }: Target): ChatRequest {
  if (!parameters) return request
  const refused = tuning.filter(name => request[name] != null && !parameters.has(name))
  if (refused.length === 0 && (!request.reasoning || parameters.has('reasoning_effort'))) return request
  const rest = { ...request }
  for (const name of refused) delete rest[name]
  if (!parameters.has('reasoning_effort')) delete rest.reasoning
  return rest
}
