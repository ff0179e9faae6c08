/** Reasoning settings: an effort, or a provider's own switch. */
import { type ChatRequest, effortOf, type Json, type Mapping, turnsReasoningOff } from '../../src/plugin.ts'

/** Sets fields of `body`. Sends nothing for a model without reasoning. */
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
  if (turnsReasoningOff(request, mapping)) {
    if (off !== undefined) setAt(body, field, off)
    return
  }
  if (effort === undefined && budget === undefined) return
  setAt(body, field, on)
  if (budget !== undefined && budgetField !== undefined) body[budgetField] = withinLimit(budget, body.max_tokens)
  else if (effort !== undefined && mapping.reasoningEfforts.some(known => known !== 'none'))
    body.reasoning_effort = effort
}

/** The output limit includes the reasoning. */
const withinLimit = (budget: number, limit: unknown): number =>
  typeof limit === 'number' ? Math.max(1, Math.min(budget, limit - 1)) : budget

/** `thinking.type` is a nested field. */
function setAt(body: Json, field: string, value: string | boolean): void {
  const [name = '', within] = field.split('.', 2)
  body[name] = within === undefined ? value : { [within]: value }
}
