/** Adapts a request's reasoning to what a mapping supports. */
import type { Mapping } from '../../core/catalog.ts'
import type { ChatRequest, ReasoningEffort } from '../../core/chat-request.ts'
import { effortOf } from '../../core/effort.ts'

/** In ascending order. */
const EFFORTS: readonly ReasoningEffort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** The nearest of the mapping's efforts, if it lists them; none for a mapping without reasoning. */
export function adaptedReasoning(request: Readonly<ChatRequest>, mapping: Mapping): Readonly<ChatRequest> {
  if (!request.lenient_reasoning) return request
  const { lenient_reasoning: _, reasoning, reasoning_effort: effort, ...rest } = request
  if (!mapping.supports.has('reasoning')) return rest
  const requested = reasoning?.max_tokens == null ? effort : effortOf(request, mapping)
  const listed = mapping.reasoningEfforts
  if (listed.length === 0 || requested == null) {
    return Object.assign(rest, reasoning && { reasoning }, effort != null && { reasoning_effort: effort })
  }
  return Object.assign(rest, { reasoning_effort: nearest(requested, listed) })
}

function nearest(asked: ReasoningEffort, listed: readonly string[]): ReasoningEffort {
  const place = EFFORTS.indexOf(asked)
  const offered = EFFORTS.filter(effort => listed.includes(effort))
  const distance = (effort: ReasoningEffort) => Math.abs(EFFORTS.indexOf(effort) - place)
  return offered.reduce((best, effort) => (distance(effort) < distance(best) ? effort : best), offered[0] ?? asked)
}
