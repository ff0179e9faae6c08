/** Reasoning settings: an effort, or a provider's own switch. */
import { type ChatRequest, effortOf, type Json, type Mapping, mayReason, turnsReasoningOff } from '../../src/plugin.ts'

/** Sets fields of `body`, whose output limit is there. Sends nothing for a model without reasoning. */
export function addReasoning(body: Json, request: Readonly<ChatRequest>, mapping: Mapping): void {
  if (mapping.reasoningSwitch) {
    turn(body, request, mapping)
    return
  }
  const effort = effortOf(request, mapping)
  if (effort !== undefined && (effort !== 'none' || mapping.supports.has('reasoning'))) body.reasoning_effort = effort
}

/** A request without reasoning settings keeps the provider's default. */
function turn(body: Json, request: Readonly<ChatRequest>, mapping: Mapping): void {
  const { field, on, off, budget: budgetField } = mapping.reasoningSwitch!
  const effort = effortOf(request, mapping)
  const budget = request.reasoning?.max_tokens ?? undefined
  if (boundsReasoning(request, mapping)) setBudget(body, budgetField!, budget)
  if (turnsReasoningOff(request, mapping)) {
    if (off !== undefined) setAt(body, field, off)
    return
  }
  if (effort === undefined && budget === undefined) return
  setAt(body, field, on)
  const isBudgeted = budget !== undefined && budgetField !== undefined
  if (!isBudgeted && effort !== undefined && mapping.reasoningEfforts.some(known => known !== 'none'))
    body.reasoning_effort = effort
}

/** Whether the reasoning has a limit of its own, since the output limit leaves it out. */
export const boundsReasoning = (request: Readonly<ChatRequest>, mapping: Mapping): boolean =>
  mapping.reasoningSwitch?.budget !== undefined && mayReason(request, mapping)

/** No larger than the output limit, so that an answer is at most twice as long. */
function setBudget(body: Json, field: string, budget: number | undefined): void {
  const limit = body.max_tokens
  if (typeof limit === 'number') body[field] = Math.min(budget ?? limit, limit)
  else if (budget !== undefined) body[field] = budget
}

/** `thinking.type` is a nested field. */
function setAt(body: Json, field: string, value: string | boolean): void {
  const [name = '', within] = field.split('.', 2)
  body[name] = within === undefined ? value : { [within]: value }
}
