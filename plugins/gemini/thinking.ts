/** Thinking settings. */
import type { ChatRequest, Json, Mapping, ReasoningEffort } from '../../src/plugin.ts'

/** Thinking tokens of each effort (docs/contract.md#efforts); a budget of 0 turns thinking off. */
const BUDGETS: Readonly<Record<ReasoningEffort, number>> = {
  none: 0,
  minimal: 512,
  low: 2048,
  medium: 8192,
  high: 24_576,
  xhigh: 65_536,
  max: 65_536,
}
/** Largest budgets, by model name. */
const MAX_BUDGET_TOKENS: readonly [RegExp, number][] = [
  [/gemini-2\.5-pro/, 32_768],
  [/gemini-2\.5-flash/, 24_576],
]
/** Smallest budget of a model whose thinking cannot be turned off. */
const MIN_BUDGET_TOKENS = 128
const LEVELS = ['minimal', 'low', 'medium', 'high']

/**
 * True for models since the third generation: they accept a listed level, bind function calls to thought signatures,
 * and search beside functions. Earlier models accept a budget.
 */
export const takesLevels = (mapping: Mapping): boolean => mapping.reasoningEfforts.length > 0

/**
 * `thinkingConfig`, or undefined when there is nothing to set. Contains either a level or a budget. Efforts are never
 * lowered: the provider rejects those that the model lacks. Where thinking cannot be turned off, `none` is the minimum.
 * Requests thoughts only when the caller sees them.
 */
export function thinkingOf(request: Readonly<ChatRequest>, mapping: Mapping): Json | undefined {
  if (!mapping.supports.has('reasoning')) return undefined
  const seen = request.include_reasoning !== false
  const budget = request.reasoning?.max_tokens
  if (budget != null) return { includeThoughts: seen, thinkingBudget: budget }
  const effort = request.reasoning?.effort ?? request.reasoning_effort
  if (effort == null) return seen ? { includeThoughts: true } : undefined
  const off = effort === 'none'
  const includeThoughts = seen && !off
  if (!takesLevels(mapping))
    return { includeThoughts, thinkingBudget: off ? leastBudget(mapping) : budgetOf(effort, mapping) }
  return { includeThoughts, thinkingLevel: off ? lowestLevel(mapping) : effort.toUpperCase() }
}

const budgetOf = (effort: ReasoningEffort, { externalId }: Mapping): number =>
  Math.min(
    BUDGETS[effort],
    MAX_BUDGET_TOKENS.find(([pattern]) => pattern.test(externalId))?.[1] ?? Number.POSITIVE_INFINITY,
  )

const leastBudget = ({ externalId }: Mapping): number => (externalId.includes('gemini-2.5-pro') ? MIN_BUDGET_TOKENS : 0)

const lowestLevel = ({ reasoningEfforts }: Mapping): string =>
  (LEVELS.find(level => reasoningEfforts.includes(level)) ?? 'minimal').toUpperCase()
