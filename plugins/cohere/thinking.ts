/** How much thinking to ask for. */
import type { ChatRequest, Mapping } from '../../src/plugin.ts'

/** Tokens of thinking for each effort (field notes section 12, the budgets of Anthropic's models). */
const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 2000,
  low: 1024,
  medium: 2000,
  high: 4000,
  xhigh: 16_000,
  max: 32_000,
}

/** The wire's `thinking`; undefined leaves the model's own way, which is to think if it can. */
export function thinkingOf(
  request: Readonly<ChatRequest>,
  mapping: Mapping,
): { type: 'enabled' | 'disabled'; token_budget?: number } | undefined {
  if (!mapping.supports.has('reasoning')) return undefined
  const effort = request.reasoning?.effort ?? request.reasoning_effort ?? undefined
  const budget = request.reasoning?.max_tokens ?? (effort === undefined ? undefined : BUDGETS[effort])
  if (budget !== undefined) return { type: 'enabled', token_budget: budget }
  return effort === 'none' ? { type: 'disabled' } : undefined
}
