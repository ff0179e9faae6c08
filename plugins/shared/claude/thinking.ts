/** Thinking settings, and replay of earlier thinking. */
import {
  budgetOf,
  type ChatRequest,
  effortOf,
  errors,
  type GatewayError,
  type Mapping,
  type Message,
  type Target,
  unseal,
} from '../../../src/plugin.ts'
import type { Block } from './blocks.ts'

/** Marks reasoning details whose signature only this wire can read. */
export const FORMAT = 'anthropic-claude-v1'

/** The smallest `budget_tokens` that the wire accepts. */
export const MIN_BUDGET = 1024
const MAX_BUDGET = 128_000
/** Tokens left for the answer by a budget, if the limit has room for both. */
const ANSWER_TOKENS = 1000
const DEFAULT_MAX_TOKENS = 4096

/** How a request lets its model think, and the token limit that leaves room for it. */
export interface Thinking {
  /** True while the model thinks: the wire then rejects sampling parameters, forced tools and prefill. */
  readonly on: boolean
  readonly thinking?: Record<string, unknown>
  readonly effort?: string
  readonly maxTokens: number
  /** Whether thoughts of a tool loop are replayed: the wire rejects them where the loop continues without thinking. */
  readonly replays: boolean
}

/** Circumstances that exclude thinking, whatever a request asks for. */
export interface Circumstances {
  /** The model must call a tool. */
  readonly forced: boolean
  /**
   * Whether the tool loop that the conversation ends in began with a thought: without one the wire rejects a budget, with
   * one it rejects that thinking ends. Undefined where it ends in none.
   */
  readonly loopBeganWithThought: boolean | undefined
}

/** Adaptive models accept an effort and choose their own budget; others accept a budget. */
export const isAdaptive = (mapping: Mapping): boolean => mapping.reasoningEfforts.length > 0

/** Whether the model cannot stop thinking and the caller does not turn it off. */
export const mustThink = (request: Readonly<ChatRequest>, mapping: Mapping): boolean =>
  isAdaptive(mapping) && !mapping.reasoningEfforts.includes('none') && effortOf(request, mapping) !== 'none'

/** The 400 for a forced tool on a model that always thinks; `param` is the field that forces it. */
export const cannotForce = ({ model }: Mapping, param: 'tool_choice' | 'response_format'): GatewayError =>
  errors.unsupported(
    `"${model.id}" always thinks, and a thinking model cannot be forced to call a tool; ` +
      (param === 'tool_choice' ? 'use tool_choice "auto".' : 'leave out the schema of response_format.'),
    param,
  )

/** Settings for a request that can force tools (see `cannotForce`): a forced tool takes precedence over thinking. */
export function thinkingOf(request: Readonly<ChatRequest>, mapping: Mapping, at: Circumstances): Thinking {
  return isAdaptive(mapping) ? byEffort(request, mapping, at) : byBudget(request, mapping, at)
}

const limitOf = ({ max_completion_tokens: newer, max_tokens: older }: Readonly<ChatRequest>) => newer ?? older
const ceilingOf = (mapping: Mapping) => mapping.maxOutput ?? mapping.model.maxOutput

/** Efforts are never downgraded: the provider rejects those that the model lacks. */
function byEffort(request: Readonly<ChatRequest>, mapping: Mapping, at: Circumstances): Thinking {
  const maxTokens = limitOf(request) ?? ceilingOf(mapping) ?? DEFAULT_MAX_TOKENS
  const effort = effortOf(request, mapping)
  if (at.forced || effort === 'none') return { on: false, thinking: { type: 'disabled' }, maxTokens, replays: false }
  const always = mustThink(request, mapping)
  // A loop that began with a thought goes on thinking, also on models that do not think by default.
  if (effort === undefined && (always || !at.loopBeganWithThought))
    return { on: always, maxTokens, replays: always || at.loopBeganWithThought === undefined }
  const display = request.include_reasoning === false ? 'omitted' : 'summarized'
  const thinking = { type: 'adaptive', display }
  return { on: true, thinking, ...(effort && { effort }), maxTokens, replays: true }
}

/**
 * The caller's limit bounds thinking and answer together: without room for the smallest budget the model does not
 * think.
 */
function byBudget(request: Readonly<ChatRequest>, mapping: Mapping, at: Circumstances): Thinking {
  const limit = limitOf(request) ?? ceilingOf(mapping)
  const requested = mapping.supports.has('reasoning') ? budgetOf(request) : undefined
  const hasRoom = limit === undefined || limit > MIN_BUDGET
  if (requested === undefined || at.forced || at.loopBeganWithThought === false || !hasRoom) {
    return { on: false, maxTokens: limit ?? DEFAULT_MAX_TOKENS, replays: false }
  }
  const wanted = Math.min(Math.max(requested, MIN_BUDGET), MAX_BUDGET)
  const maxTokens = limit ?? Math.max(DEFAULT_MAX_TOKENS, wanted + ANSWER_TOKENS)
  const budget = Math.max(MIN_BUDGET, Math.min(wanted, maxTokens - ANSWER_TOKENS))
  return { on: true, thinking: { type: 'enabled', budget_tokens: budget }, maxTokens, replays: true }
}

/** A block of thinking, unsealed. */
interface Thought {
  readonly index: number
  text: string
  signature: string | undefined
  data: string | undefined
}

/**
 * The thoughts of an earlier answer in the format of this provider, in order: its wire rejects those without a seal of its
 * own. Details with one `block_index` are pieces of one block.
 */
export function thoughtsOf({ reasoning_details: details }: Message, format: string, target: Target): Thought[] {
  const thoughts = new Map<number, Thought>()
  details?.forEach((detail: Detail, i) => {
    if (detail.format !== format) return
    const index = typeof detail.block_index === 'number' ? detail.block_index : i
    const thought = thoughts.get(index) ?? { index, text: '', signature: undefined, data: undefined }
    thoughts.set(index, thought)
    thought.text += detail.text ?? ''
    thought.signature ??= unseal(target, detail.signature)
    thought.data ??= unseal(target, detail.data)
  })
  return [...thoughts.values()].sort((a, b) => a.index - b.index)
}

/** The thinking blocks of an earlier answer that this provider sealed, unmodified. */
export function replayThinking(message: Message, target: Target): Block[] {
  const blocks: Block[] = []
  let next = 0
  for (const { index, text, signature, data } of thoughtsOf(message, FORMAT, target)) {
    // Other content precedes it: only the opening thought can be replayed (docs/contract.md#messages).
    if (index !== next++) break
    if (data !== undefined) blocks.push({ type: 'redacted_thinking', data })
    else if (signature !== undefined) blocks.push({ type: 'thinking', thinking: text, signature })
  }
  return blocks
}

type Detail = NonNullable<Message['reasoning_details']>[number] & { block_index?: unknown }
