/** Reasoning settings, in which each model family has fields of its own (docs/contract.md#efforts), and what is sent back. */
import { type ChatRequest, effortOf, type Json, type Mapping, type Message, type Target } from '../../src/plugin.ts'
import { type Circumstances, FORMAT as CLAUDE, thinkingOf, thoughtsOf } from '../shared/claude/thinking.ts'
import type { Block } from './block.ts'
import { familyOf } from './family.ts'

/** How a request lets its model think. */
export interface Reasoning {
  /** True while Claude thinks: sampling parameters, forced tools and prefill are then rejected. */
  readonly thinks: boolean
  /** Members of `additionalModelRequestFields`. */
  readonly fields: Json
  readonly maxTokens: number | undefined
  /** Whether limit and sampling can be set. */
  readonly configurable: boolean
  /** Whether earlier reasoning is sent back. */
  readonly replays: boolean
}

/** Efforts are never downgraded: the provider rejects those that the model lacks. */
export function reasoningOf(request: Readonly<ChatRequest>, mapping: Mapping, at: Circumstances): Reasoning {
  const limit = request.max_completion_tokens ?? request.max_tokens ?? undefined
  const { maker } = familyOf(mapping)
  if (maker === 'anthropic') return claude(request, mapping, limit, at)
  const effort = effortOf(request, mapping)
  const idle = { thinks: false, fields: {}, maxTokens: limit, configurable: true, replays: true }
  if (effort === undefined || !mapping.supports.has('reasoning')) return idle
  if (maker === 'amazon') {
    if (effort === 'none') return idle
    const fields = { reasoningConfig: { type: 'enabled', maxReasoningEffort: effort } }
    return { ...idle, fields, configurable: effort !== 'high' }
  }
  if (effort === 'none' && !mapping.reasoningEfforts.includes(effort)) return idle
  return { ...idle, fields: { reasoning_effort: effort } }
}

/** Without a limit the wire uses the model's own, so it is sent only when the caller or a budget requires one. */
function claude(
  request: Readonly<ChatRequest>,
  mapping: Mapping,
  asked: number | undefined,
  at: Circumstances,
): Reasoning {
  const { on, thinking, effort: wanted, maxTokens, replays } = thinkingOf(request, mapping, at)
  const effort = request.effort ?? wanted
  const hasBudget = thinking?.budget_tokens !== undefined
  return {
    thinks: on,
    fields: { ...(thinking && { thinking }), ...(effort && { output_config: { effort } }) },
    maxTokens: hasBudget ? maxTokens : asked,
    configurable: true,
    replays,
  }
}

/** Marks reasoning details that models of other makers hide behind this wire. */
const HIDDEN = 'bedrock-converse-v1'

/** The format of a model's signed or hidden reasoning. Only Claude signs visible reasoning. */
export const formatOf = (mapping: Mapping): string => (isClaude(mapping) ? CLAUDE : HIDDEN)
/** True for models of Anthropic, whose reasoning is signed. */
export const isClaude = (mapping: Mapping): boolean => familyOf(mapping).maker === 'anthropic'

/** The reasoning blocks of an earlier answer that this provider sealed, unmodified. */
export function replayReasoning(message: Message, target: Target): Block[] {
  const blocks: Block[] = []
  for (const { text, signature, data } of thoughtsOf(message, formatOf(target.mapping), target)) {
    if (data !== undefined) blocks.push({ reasoningContent: { redactedContent: data } })
    else if (signature !== undefined) blocks.push({ reasoningContent: { reasoningText: { text, signature } } })
  }
  return blocks
}
