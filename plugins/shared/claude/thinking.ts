/** Thinking: how much of it to ask for, and which earlier thinking may be sent back. */
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

/** Marks reasoning details whose signature only this wire understands. */
export const FORMAT = 'anthropic-claude-v1'

export const MIN_BUDGET = 1024
const MAX_BUDGET = 128_000
/** What a budget leaves for the answer itself, where the limit has room for both. */
const ANSWER_TOKENS = 1000
const DEFAULT_MAX_TOKENS = 4096

export interface Thinking {
  /** True while the model thinks: sampling parameters, forced tools and prefill are then refused by the wire. */
  readonly on: boolean
  readonly thinking?: Record<string, unknown>
  readonly effort?: string
  readonly maxTokens: number
  /** Whether the thoughts of a tool loop are sent back: not where it goes on without any. */
  readonly replays: boolean
}

/** What excludes thinking, however much of it a request asks for. */
export interface Circumstances {
  /** The model must call a tool. */
  readonly forced: boolean
  /** The conversation ends in a loop of tool calls that began without a thought; only a budget is refused there. */
  readonly loopWithoutThought: boolean
}

/** Adaptive models take an effort and choose their own budget; the others take a budget. */
export const isAdaptive = (mapping: Mapping): boolean => mapping.reasoningEfforts.length > 0

/** Whether the model thinks whatever else is asked: it cannot be told not to, and the caller does not try. */
export const mustThink = (request: Readonly<ChatRequest>, mapping: Mapping): boolean =>
  isAdaptive(mapping) && !mapping.reasoningEfforts.includes('none') && effortOf(request, mapping) !== 'none'

/** 400 for a tool that is forced on a model which always thinks; `param` is the field that forces it. */
export const cannotForce = ({ model }: Mapping, param: 'tool_choice' | 'response_format'): GatewayError =>
  errors.unsupported(
    `"${model.id}" always thinks here, and cannot be forced to call a tool then; ` +
      (param === 'tool_choice' ? 'use tool_choice "auto".' : 'leave out the schema of response_format.'),
    param,
  )

/** Settings for a request whose tools can be forced (see `cannotForce`): a forced tool wins over thinking. */
export function thinkingOf(request: Readonly<ChatRequest>, mapping: Mapping, at: Circumstances): Thinking {
  return isAdaptive(mapping) ? byEffort(request, mapping, at) : byBudget(request, mapping, at)
}

const limitOf = ({ max_completion_tokens: newer, max_tokens: older }: Readonly<ChatRequest>) => newer ?? older
const ceilingOf = (mapping: Mapping) => mapping.maxOutput ?? mapping.model.maxOutput

/** Efforts are never downgraded: one that the model lacks is the provider's to refuse. */
function byEffort(request: Readonly<ChatRequest>, mapping: Mapping, { forced }: Circumstances): Thinking {
  const maxTokens = limitOf(request) ?? ceilingOf(mapping) ?? DEFAULT_MAX_TOKENS
  const effort = effortOf(request, mapping)
  if (forced || effort === 'none') return { on: false, thinking: { type: 'disabled' }, maxTokens, replays: false }
  if (effort === undefined) return { on: mustThink(request, mapping), maxTokens, replays: true }
  const display = request.include_reasoning === false ? 'omitted' : 'summarized'
  return { on: true, thinking: { type: 'adaptive', display }, effort, maxTokens, replays: true }
}

/** The caller's limit bounds thinking and answer together: without room for the least budget the model does not think. */
function byBudget(request: Readonly<ChatRequest>, mapping: Mapping, at: Circumstances): Thinking {
  const limit = limitOf(request) ?? ceilingOf(mapping)
  const asked = mapping.supports.has('reasoning') ? budgetOf(request) : undefined
  const hasRoom = limit === undefined || limit > MIN_BUDGET
  if (asked === undefined || at.forced || at.loopWithoutThought || !hasRoom) {
    return { on: false, maxTokens: limit ?? DEFAULT_MAX_TOKENS, replays: asked === undefined }
  }
  const wanted = Math.min(Math.max(asked, MIN_BUDGET), MAX_BUDGET)
  const maxTokens = limit ?? Math.max(DEFAULT_MAX_TOKENS, wanted + ANSWER_TOKENS)
  const budget = Math.max(MIN_BUDGET, Math.min(wanted, maxTokens - ANSWER_TOKENS))
  return { on: true, thinking: { type: 'enabled', budget_tokens: budget }, maxTokens, replays: true }
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
    // Something else stood before it: only what opens the turn has a place in it (docs/contract.md#messages).
    if (index !== next++) break
    if (data !== undefined) blocks.push({ type: 'redacted_thinking', data })
    else if (signature !== undefined) blocks.push({ type: 'thinking', thinking: text, signature })
  }
  return blocks
}

type Detail = NonNullable<Message['reasoning_details']>[number] & { block_index?: unknown }
