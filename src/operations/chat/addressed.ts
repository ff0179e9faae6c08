/** Options that a request addresses to one provider by name. */

import type { ChatRequest } from '../../core/chat-request.ts'
import type { Capability } from '../../core/provider-settings.ts'
import type { Target } from '../../core/translator.ts'
import { isObject, type Json } from '../../json/json.ts'

type Field = keyof ChatRequest

/** Options equivalent to a field, under the names of the AI SDK's own providers. */
const SAME: Readonly<Record<string, Field>> = {
  reasoningEffort: 'reasoning_effort',
  thinkingLevel: 'reasoning_effort',
  effort: 'effort',
  textVerbosity: 'verbosity',
  parallelToolCalls: 'parallel_tool_calls',
  promptCacheKey: 'prompt_cache_key',
  promptCacheRetention: 'prompt_cache_retention',
  user: 'user',
}
/** Capability that a mapping needs for a field. */
const NEEDS: Readonly<Partial<Record<Field, Capability>>> = {
  reasoning_effort: 'reasoning',
  reasoning: 'reasoning',
  effort: 'effort',
  verbosity: 'verbosity',
}

const names = (namespace: string, id: string): boolean =>
  id === namespace || id.startsWith(`${namespace}-`) || id.endsWith(`-${namespace}`)

/**
 * The request for `target`, with the options of its own namespace and of no other. A namespace is a provider's id, or
 * what it begins or ends with (`google` and `vertex` of `google-vertex`). Options that do not fit their field are
 * dropped, as unknown fields are.
 */
export function addressed(request: Readonly<ChatRequest>, { provider, mapping }: Target): Readonly<ChatRequest> {
  if (!request.provider_options) return request
  const { provider_options: options, ...rest } = request
  for (const [namespace, own] of Object.entries(options)) {
    if (!names(namespace, provider.id)) continue
    for (const [field, value] of fieldsOf(own)) {
      const needed = NEEDS[field]
      const isTaken = needed === undefined || mapping.supports.has(needed)
      if (isTaken && fits(field, value)) setReasoning(rest, field, value)
    }
  }
  return rest
}

/** An effort and a budget exclude each other. */
function setReasoning(request: ChatRequest, field: Field, value: unknown): void {
  if (field === 'reasoning') delete request.reasoning_effort
  if (field === 'reasoning_effort') delete request.reasoning
  if (field === 'parallel_tool_calls' && !request.tools?.length) return
  Reflect.set(request, field, value)
}

function* fieldsOf(options: Json): Generator<readonly [Field, unknown]> {
  for (const [name, value] of Object.entries(options)) {
    const field = Object.hasOwn(SAME, name) ? SAME[name] : undefined
    if (field) yield [field, value]
    else if (name === 'disableParallelToolUse' && typeof value === 'boolean') yield ['parallel_tool_calls', !value]
    else if (name === 'metadata' && isObject(value)) yield ['user', value.userId]
    else if (name === 'thinking' && isObject(value)) yield* thinkingOf(value.type, value.budgetTokens)
    else if (name === 'thinkingConfig' && isObject(value)) {
      yield* thinkingOf('enabled', value.thinkingBudget)
      if (value.thinkingLevel !== undefined) yield ['reasoning_effort', value.thinkingLevel]
    }
  }
}

function* thinkingOf(type: unknown, budget: unknown): Generator<readonly [Field, unknown]> {
  if (type === 'disabled' || budget === 0) yield ['reasoning_effort', 'none']
  else if (Number.isSafeInteger(budget) && Number(budget) > 0) yield ['reasoning', { max_tokens: budget }]
}

type Words<F extends Field> = readonly ChatRequest[F][]
const efforts: Words<'reasoning_effort'> = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
const levels: Words<'effort'> & Words<'verbosity'> = ['low', 'medium', 'high']
const retentions: Words<'prompt_cache_retention'> = ['in_memory', '24h']
/** Allowed values of enumerated fields. */
const WORDS: Readonly<Partial<Record<Field, readonly unknown[]>>> = {
  reasoning_effort: efforts,
  effort: levels,
  verbosity: levels,
  prompt_cache_retention: retentions,
  parallel_tool_calls: [true, false],
}

/** Budgets were validated when they were read. */
const fits = (field: Field, value: unknown): boolean =>
  field === 'reasoning' || (WORDS[field]?.includes(value) ?? typeof value === 'string')
