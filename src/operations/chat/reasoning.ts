/** How a mapping reasons that cannot do just what a request wishes for. */
import type { Mapping } from '../../core/catalog.ts'
import { effortOf } from '../../core/effort.ts'
import type { ChatRequest, ReasoningEffort } from '../../core/ops.ts'

/** From the least to the most. */
const EFFORTS: readonly ReasoningEffort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** Where a mapping lists its efforts, the nearest of them; where it does not reason at all, nothing. */
export function adaptedReasoning(request: Readonly<ChatRequest>, mapping: Mapping): Readonly<ChatRequest> {
  if (!request.lenient_reasoning) return request
  const { lenient_reasoning: _, reasoning, reasoning_effort: effort, ...rest } = request
  if (!mapping.supports.has('reasoning')) return rest
  const asked = reasoning?.max_tokens == null ? effort : effortOf(request, mapping)
  const listed = mapping.reasoningEfforts
  if (listed.length === 0 || asked == null) {
    return Object.assign(rest, reasoning && { reasoning }, effort != null && { reasoning_effort: effort })
  }
  return Object.assign(rest, { reasoning_effort: nearest(asked, listed) })
}

function nearest(asked: ReasoningEffort, listed: readonly string[]): ReasoningEffort {
  const place = EFFORTS.indexOf(asked)
  const offered = EFFORTS.filter(effort => listed.includes(effort))
  const distance = (effort: ReasoningEffort) => Math.abs(EFFORTS.indexOf(effort) - place)
  return offered.reduce((best, effort) => (distance(effort) < distance(best) ? effort : best), offered[0] ?? asked)
}
