/** A chat request as a Responses request (docs/contributing/wire-sources.md#openai). */
import { type ChatRequest, effortOf, errors, type Json, type Target, type WireRequest } from '../../src/plugin.ts'
import { ANY_JSON, lacksWord, nonObjectInstruction, nonObjectSchema } from '../shared/any-json.ts'
import { takesBreakpoints } from '../shared/breakpoints.ts'
import { toolsOf } from './tools.ts'
import { itemsOf } from './turns.ts'

/** Parameters with the same meaning on both sides. */
const SAME = [
  'temperature',
  'top_p',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
] as const satisfies readonly (keyof ChatRequest)[]

/** The wire rejects smaller limits. */
const MIN_OUTPUT_TOKENS = 16

/**
 * Nothing is stored at the provider; reasoning that it needs again comes back encrypted. Equal requests give equal
 * bytes, and a longer conversation begins with the items of the shorter one.
 */
export function encode(request: Readonly<ChatRequest>, target: Target, stream: boolean): WireRequest {
  const { mapping } = target
  if ((request.n ?? 1) > 1) throw errors.unsupported('This provider returns one choice per request.', 'n')
  const reasons = mapping.supports.has('reasoning')
  const reasoning = reasoningOf(request, target)
  const text = textSettingsOf(request)
  const maxTokens = request.max_completion_tokens ?? request.max_tokens
  const tier = request.service_tier ?? 'auto'
  const body: Json = {
    model: mapping.externalId,
    store: false,
    ...includesOf(request, reasons),
    ...(reasoning && { reasoning }),
    ...(text && { text }),
    ...toolsOf(request, mapping),
    input: inputItems(request, target),
    ...(maxTokens != null && { max_output_tokens: Math.max(maxTokens, MIN_OUTPUT_TOKENS) }),
  }
  for (const name of SAME) if (request[name] != null) body[name] = request[name]
  if (request.top_logprobs !== undefined) body.top_logprobs = request.top_logprobs
  if (tier !== 'auto' && tier !== 'default') body.service_tier = tier
  if (stream) body.stream = true
  const isRaised = maxTokens != null && maxTokens < MIN_OUTPUT_TOKENS
  const sent: WireRequest = { path: '/responses', body }
  if (isRaised) sent.output = { limit: MIN_OUTPUT_TOKENS }
  return sent
}

/** Fields of an answer that must be requested. */
function includesOf({ logprobs }: Readonly<ChatRequest>, reasons: boolean): Json {
  const include = [
    ...(reasons ? ['reasoning.encrypted_content'] : []),
    ...(logprobs === true ? ['message.output_text.logprobs'] : []),
  ]
  return include.length > 0 ? { include } : {}
}

/** The wire takes no empty input. */
function inputItems(request: Readonly<ChatRequest>, target: Target): Json[] {
  const items = itemsOf(request.messages, target, takesBreakpoints(request, target.mapping))
  const instruction = lacksWord(request) ? ANY_JSON : nonObjectInstruction(request)
  if (instruction) items.unshift({ type: 'message', role: 'system', content: instruction })
  return items.length > 0 ? items : [{ type: 'message', role: 'user', content: '.' }]
}

/** Sends nothing for a model without reasoning. Without a summary the reasoning is hidden. */
export function reasoningOf(request: Readonly<ChatRequest>, { mapping }: Target): Json | undefined {
  const given = request.reasoning
  const effort = effortOf(request, mapping)
  const reasons = mapping.supports.has('reasoning')
  const reasoning = {
    ...(effort !== undefined && (reasons || effort !== 'none') && { effort }),
    ...(reasons && effort !== 'none' && request.include_reasoning !== false && { summary: 'auto' }),
    ...(reasons && given?.context && { context: given.context }),
    ...(reasons && given?.mode && { mode: given.mode }),
  }
  return Object.keys(reasoning).length > 0 ? reasoning : undefined
}

function textSettingsOf(request: Readonly<ChatRequest>): Json | undefined {
  const { response_format: given, verbosity } = request
  const format = nonObjectSchema(request) ? undefined : given
  if (verbosity == null && (format == null || format.type === 'text')) return undefined
  return {
    ...(format != null && format.type !== 'text' && { format: formatOf(format) }),
    ...(verbosity != null && { verbosity }),
  }
}

function formatOf(format: NonNullable<ChatRequest['response_format']>): Json {
  if (format.type !== 'json_schema') return { type: format.type }
  const { name, description, schema, strict } = format.json_schema
  return {
    type: 'json_schema',
    name,
    ...(description !== undefined && { description }),
    schema,
    ...(strict != null && { strict }),
  }
}
