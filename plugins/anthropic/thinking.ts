/** Thinking: how much of it to ask for, and which earlier thinking may be sent back. */
import { type ChatRequest, errors, type Mapping, type Message, type Target, unseal } from '../../src/plugin.ts'
import type { Block } from './blocks.ts'

/** Marks reasoning details whose signature only this wire understands. */
export const FORMAT = 'anthropic-claude-v1'

/** Tokens of thinking for each effort, for models that take a budget (field notes section 12). */
export const thinkingBudgets: Readonly<Record<string, number>> = {
  minimal: 2000,
  low: 1024,
  medium: 2000,
  high: 4000,
  xhigh: 16_000,
  max: 32_000,
}
const MIN_BUDGET = 1024
const MAX_BUDGET = 128_000
/** What a raised `max_tokens` leaves for the answer itself. */
const ANSWER_TOKENS = 1000
const DEFAULT_MAX_TOKENS = 4096

export interface Thinking {
  /** True while the model thinks: sampling parameters, forced tools and prefill are then refused by the wire. */
  readonly on: boolean
  readonly thinking?: Record<string, unknown>
  /** In the place of `thinking` when a tool is forced: some models think unless they are told not to. */
  readonly whenForced?: Record<string, unknown>
  readonly effort?: string
  readonly maxTokens: number
}

const DISABLED = { type: 'disabled' }

/** Adaptive models take an effort and choose their own budget; the others take a budget. */
export const isAdaptive = (mapping: Mapping): boolean => mapping.reasoningEfforts.length > 0

/** Settings for a request. Efforts are never downgraded: one that the model lacks is the provider's to refuse. */
export function thinkingOf(request: Readonly<ChatRequest>, mapping: Mapping): Thinking {
  const ceiling = mapping.maxOutput ?? mapping.model.maxOutput
  const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? ceiling ?? DEFAULT_MAX_TOKENS
  const effort = request.reasoning?.effort ?? request.reasoning_effort
  const tokens = request.reasoning?.max_tokens

  if (isAdaptive(mapping)) {
    if (tokens != null && !effort) {
      throw errors.unsupported(
        `"${mapping.model.id}" takes no thinking budget here; use reasoning.effort: ${mapping.reasoningEfforts.join(', ')}.`,
        'reasoning.max_tokens',
      )
    }
    // A model that cannot be told not to think always thinks.
    if (!effort && !mapping.reasoningEfforts.includes('none')) return { on: true, maxTokens }
    if (!effort) return { on: false, ...(request.effort == null && { whenForced: DISABLED }), maxTokens }
    if (effort === 'none') return { on: false, thinking: DISABLED, maxTokens }
    const thinking = { type: 'adaptive', display: 'summarized' }
    return { on: true, thinking, effort: effort === 'minimal' ? 'low' : effort, maxTokens }
  }

  const asked = tokens ?? thinkingBudgets[effort ?? 'none']
  if (asked === undefined || !mapping.supports.has('reasoning')) return { on: false, maxTokens }
  const budget = Math.min(Math.max(asked, MIN_BUDGET), MAX_BUDGET)
  const raised = Math.max(maxTokens, Math.min(budget + ANSWER_TOKENS, ceiling ?? Number.POSITIVE_INFINITY))
  // The budget must stay below max_tokens, also where the model's ceiling left no room for both.
  const budgetTokens = Math.max(MIN_BUDGET, Math.min(budget, raised - 1))
  return { on: true, thinking: { type: 'enabled', budget_tokens: budgetTokens }, maxTokens: raised }
}

interface Signed {
  readonly index: number
  text: string
  signature: string | undefined
  data: string | undefined
}

/**
 * The thinking blocks of an earlier answer, unmodified and in their order, as far as this provider sealed them. What
 * it did not sign, another provider made: it would be refused. Details of one `block_index` are pieces of one block.
 */
export function replayThinking(message: Message, target: Target): Block[] {
  const signed = new Map<number, Signed>()
  message.reasoning_details?.forEach((detail: Detail, i) => {
    if (detail.format !== FORMAT) return
    const index = typeof detail.block_index === 'number' ? detail.block_index : i
    const block = signed.get(index) ?? { index, text: '', signature: undefined, data: undefined }
    signed.set(index, block)
    block.text += detail.text ?? ''
    block.signature ??= unseal(target, detail.signature)
    block.data ??= unseal(target, detail.data)
  })
  const blocks: Block[] = []
  let next = 0
  for (const { index, text, signature, data } of [...signed.values()].sort((a, b) => a.index - b.index)) {
    // Something else stood before it: only what opens the turn has a place in it (field notes 1.3).
    if (index !== next++) break
    if (data !== undefined) blocks.push({ type: 'redacted_thinking', data })
    else if (signature !== undefined) blocks.push({ type: 'thinking', thinking: text, signature })
  }
  return blocks
}

type Detail = NonNullable<Message['reasoning_details']>[number] & { block_index?: unknown }
