/** Thinking settings. */
import { budgetOf, type ChatRequest, effortOf, type Mapping } from '../../src/plugin.ts'

/** The wire's `thinking`; undefined leaves the model's default, which is to think if it can. */
export function thinkingOf(
  request: Readonly<ChatRequest>,
  mapping: Mapping,
): { type: 'enabled' | 'disabled'; token_budget?: number } | undefined {
  if (!mapping.supports.has('reasoning')) return undefined
  const budget = budgetOf(request)
  if (budget !== undefined) return { type: 'enabled', token_budget: budget }
  return effortOf(request, mapping) === 'none' ? { type: 'disabled' } : undefined
}
