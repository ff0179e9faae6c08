/** A chat request in Mistral's dialect (docs/contributing/wire-sources.md#mistral). */
import { type ChatRequest, effortOf, type Json, type Mapping, type Target, type WireRequest } from '../../src/plugin.ts'
import { shortName } from '../shared/tool-name.ts'
import { functionOf } from '../shared/tool-schema.ts'
import { turnsOf } from './turns.ts'

/** Parameters with the same meaning on both sides. */
const SAME = [
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'prompt_cache_key',
  'stop',
] as const satisfies readonly (keyof ChatRequest)[]

const MAX_TEMPERATURE = 1.5
/** The wire's two tiers: better service if the account has it, or never. There is no equivalent of `flex`. */
const TIERS: Readonly<Record<string, string>> = { auto: 'auto', priority: 'auto', default: 'standard_only' }

/**
 * Sends only fields of the wire, which rejects others with 422. Does not modify `request`; equal requests give equal
 * bytes.
 */
export function encode(request: Readonly<ChatRequest>, target: Target, stream: boolean): WireRequest {
  const { mapping } = target
  const body: Json = { model: mapping.externalId, messages: turnsOf(request.messages, target) }
  if (request.temperature != null) body.temperature = Math.min(Math.max(request.temperature, 0), MAX_TEMPERATURE)
  for (const name of SAME) if (request[name] != null) body[name] = request[name]
  if (request.seed !== undefined) body.random_seed = request.seed
  const maxTokens = request.max_completion_tokens ?? request.max_tokens
  if (maxTokens != null) body.max_tokens = maxTokens
  if ((request.n ?? 1) > 1) body.n = request.n
  if (request.response_format) body.response_format = formatOf(request.response_format)
  Object.assign(body, reasoningOf(request, mapping), toolsOf(request))
  const tier = TIERS[request.service_tier ?? '']
  if (tier !== undefined) body.service_tier = tier
  if (stream) body.stream = true
  return { path: '/chat/completions', body }
}

/**
 * Models with efforts get them unchanged, including `max`: the provider rejects those that the model lacks. Magistral
 * models only turn reasoning on or off.
 */
function reasoningOf(request: Readonly<ChatRequest>, mapping: Mapping): Json {
  const effort = effortOf(request, mapping)
  if (effort === undefined) return {}
  if (mapping.reasoningEfforts.length > 0 && !/magistral/i.test(mapping.externalId)) return { reasoning_effort: effort }
  return effort === 'none' ? {} : { prompt_mode: 'reasoning' }
}

function formatOf(format: NonNullable<ChatRequest['response_format']>): Json {
  if (format.type !== 'json_schema') return { type: format.type }
  const { name, description, schema, strict } = format.json_schema
  return {
    type: 'json_schema',
    json_schema: {
      name,
      ...(description === undefined ? {} : { description }),
      schema,
      ...(strict == null ? {} : { strict }),
    },
  }
}

/** `tools`, `tool_choice` and `parallel_tool_calls`; none of them without function tools. */
function toolsOf(request: Readonly<ChatRequest>): Json {
  const tools: Json[] = []
  for (const tool of request.tools ?? [])
    if (tool.type === 'function') tools.push({ type: 'function', function: functionOf(tool.function) })
  if (tools.length === 0) return {}
  const choice = choiceOf(request.tool_choice)
  const parallel = request.parallel_tool_calls
  return {
    tools,
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(parallel == null ? {} : { parallel_tool_calls: parallel }),
  }
}

function choiceOf(choice: ChatRequest['tool_choice']): unknown {
  if (choice === 'required') return 'any'
  if (choice == null || typeof choice === 'string') return choice ?? undefined
  if (choice.type !== 'function') return undefined
  return { type: 'function', function: { name: shortName(choice.function.name) } }
}
