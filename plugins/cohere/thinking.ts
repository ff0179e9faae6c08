/** How much thinking to ask for. */
import type { ChatRequest, Mapping } from '../../src/plugin.ts'
import { thinkingBudgets } from '../anthropic/thinking.ts'

/** The wire's `thinking`; undefined leaves the model's own way, which is to think if it can. */
export function thinkingOf(
  request: Readonly<ChatRequest>,
  mapping: Mapping,
): { type: 'enabled' | 'disabled'; token_budget?: number } | undefined {
  if (!mapping.supports.has('reasoning')) return undefined
  const effort = request.reasoning?.effort ?? request.reasoning_effort ?? undefined
  const budget = request.reasoning?.max_tokens ?? (effort === undefined ? undefined : thinkingBudgets[effort])
  if (budget !== undefined) return { type: 'enabled', token_budget: budget }
  return effort === 'none' ? { type: 'disabled' } : undefined
}
