/** How hard a model is to think: by an effort, or by a field of the provider's own that turns it on and off. */
import { type ChatRequest, effortOf, type Json, type Mapping } from '../../src/plugin.ts'

/** Sets the fields of `body`. A model that cannot reason is not told not to. */
export function addReasoning(body: Json, request: Readonly<ChatRequest>, mapping: Mapping): void {
  if (mapping.reasoningSwitch) {
    turn(body, request, mapping)
    return
  }
  const effort = effortOf(request, mapping)
  if (effort !== undefined && (effort !== 'none' || mapping.supports.has('reasoning'))) body.reasoning_effort = effort
}

/** A request that says nothing of reasoning leaves it to the provider. */
function turn(body: Json, request: Readonly<ChatRequest>, mapping: Mapping): void {
  const { field, on, off, budget: budgetField } = mapping.reasoningSwitch!
  const effort = effortOf(request, mapping)
  const budget = request.reasoning?.max_tokens ?? undefined
  const isForced = off !== undefined && forcesTool(request)
  if (isForced || effort === 'none') {
    if (off !== undefined) setAt(body, field, off)
    return
  }
  if (effort === undefined && budget === undefined) return
  setAt(body, field, on)
  if (budget !== undefined && budgetField !== undefined) body[budgetField] = withinLimit(budget, body.max_tokens)
  else if (effort !== undefined && mapping.reasoningEfforts.some(known => known !== 'none'))
    body.reasoning_effort = effort
}

/** Providers with such a switch force a tool only while reasoning is off. */
const forcesTool = ({ tools, tool_choice: choice }: Readonly<ChatRequest>): boolean =>
  tools?.some(({ type }) => type === 'function') === true &&
  (choice === 'required' || (typeof choice === 'object' && choice?.type === 'function'))

/** The limit of the answer has the reasoning in it. */
const withinLimit = (budget: number, limit: unknown): number =>
  typeof limit === 'number' ? Math.max(1, Math.min(budget, limit - 1)) : budget

/** `thinking.type` is a field within a field. */
function setAt(body: Json, field: string, value: string | boolean): void {
  const [name = '', within] = field.split('.', 2)
  body[name] = within === undefined ? value : { [within]: value }
}
