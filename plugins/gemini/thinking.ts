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
/** Smallest and largest budgets other than 0, by model name. */
const BUDGET_RANGES: readonly [RegExp, least: number, most: number][] = [
  [/gemini-.*-pro/, 128, 32_768],
  [/gemini-.*-lite/, 512, 24_576],
  [/gemini-.*flash/, 1, 24_576],
]
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
  if (budget != null) return { includeThoughts: seen, thinkingBudget: withinRange(budget, mapping) }
  const effort = request.reasoning?.effort ?? request.reasoning_effort
  if (effort == null) return seen ? { includeThoughts: true } : undefined
  const off = effort === 'none'
  const includeThoughts = seen && !off
  if (!takesLevels(mapping))
    return { includeThoughts, thinkingBudget: off ? leastBudget(mapping) : withinRange(BUDGETS[effort], mapping) }
  return { includeThoughts, thinkingLevel: off ? lowestLevel(mapping) : effort.toUpperCase() }
}

/** The nearest budget that the model takes: clients may not know which these are. */
function withinRange(budget: number, { externalId }: Mapping): number {
  const [, least, most] = BUDGET_RANGES.find(([pattern]) => pattern.test(externalId)) ?? []
  return Math.min(Math.max(budget, least ?? 1), most ?? Number.POSITIVE_INFINITY)
}

/** Thinking of a pro model cannot be turned off. */
const leastBudget = (mapping: Mapping): number =>
  /gemini-.*-pro/.test(mapping.externalId) ? withinRange(0, mapping) : 0

const lowestLevel = ({ reasoningEfforts }: Mapping): string =>
  (LEVELS.find(level => reasoningEfforts.includes(level)) ?? 'minimal').toUpperCase()
