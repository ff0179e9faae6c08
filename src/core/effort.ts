/** How much a model shall reason: some wires take an effort, others a budget of tokens, and a caller may send either. */

import type { ChatRequest, ReasoningEffort } from './chat-request.ts'
import type { Mapping } from './translator.ts'

type Effort = Exclude<ReasoningEffort, 'none'>

/** Tokens for each effort (docs/contract.md#efforts). Of two efforts equally near to a budget the first counts. */
const effortBudgets: Readonly<Record<Effort, number>> = {
  low: 1024,
  medium: 2000,
  minimal: 2000,
  high: 4000,
  xhigh: 16_000,
  max: 32_000,
}

/** Efforts of a mapping that lists none. */
const USUAL: readonly string[] = ['low', 'medium', 'high']

/**
 * Returns the effort for a wire that takes efforts. A budget overrides it with the nearest effort
 * (docs/contract.md#efforts). Otherwise it is passed on, even if the mapping may lack it. Undefined leaves the model at
 * its default.
 */
export function effortOf(request: Readonly<ChatRequest>, mapping: Mapping): ReasoningEffort | undefined {
  const { reasoning, reasoning_effort: plain } = request
  const nearest = reasoning?.max_tokens == null ? undefined : nearestEffort(reasoning.max_tokens, mapping)
  return nearest ?? reasoning?.effort ?? plain ?? undefined
}

/** Returns the budget for a wire that takes budgets; undefined when the request sets none or turns reasoning off. */
export function budgetOf({ reasoning, reasoning_effort: plain }: Readonly<ChatRequest>): number | undefined {
  if (reasoning?.max_tokens != null) return reasoning.max_tokens
  const effort = reasoning?.effort ?? plain ?? 'none'
  return effort === 'none' ? undefined : effortBudgets[effort]
}

/** Providers with a switch accept a forced tool only while reasoning is off. */
const forcesTool = ({ tools, tool_choice: choice }: Readonly<ChatRequest>): boolean =>
  tools?.some(({ type }) => type === 'function') === true &&
  (choice === 'required' || (typeof choice === 'object' && choice?.type === 'function'))

/** Whether a request asks for an answer without reasoning, which not every mapping can give. */
export const turnsReasoningOff = (request: Readonly<ChatRequest>, mapping: Mapping): boolean =>
  effortOf(request, mapping) === 'none' || (mapping.reasoningSwitch?.off !== undefined && forcesTool(request))

/** False where the model cannot reason, or the request turns that off and the mapping has a way to. */
export function mayReason(request: Readonly<ChatRequest>, mapping: Mapping): boolean {
  if (!mapping.supports.has('reasoning')) return false
  if (!turnsReasoningOff(request, mapping)) return true
  const { reasoningSwitch, reasoningEfforts: offered } = mapping
  return reasoningSwitch ? reasoningSwitch.off === undefined : offered.length > 0 && !offered.includes('none')
}

/** Undefined for a mapping that only lists `none`: its model reasons or not, without any effort. */
function nearestEffort(budget: number, { reasoningEfforts }: Mapping): Effort | undefined {
  const offered = reasoningEfforts.length > 0 ? reasoningEfforts : USUAL
  let nearest: Effort | undefined
  let least = Number.POSITIVE_INFINITY
  for (const effort of Object.keys(effortBudgets) as Effort[]) {
    const distance = Math.abs(effortBudgets[effort] - budget)
    if (distance >= least || !offered.includes(effort)) continue
    nearest = effort
    least = distance
  }
  return nearest
}
