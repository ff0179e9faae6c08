/** A chat request as a Converse request (docs/contributing/wire-sources.md#bedrock). */
import {
  type CacheMark,
  type ChatRequest,
  endsInAnswer,
  errors,
  isObject,
  type Json,
  type Mapping,
  pathSegment,
  schemaInstruction,
  type Target,
  type WireRequest,
  wellFormed,
} from '../../src/plugin.ts'
import { ANY_JSON } from '../shared/any-json.ts'
import { beganWithThought, dropThoughts, openLoop } from '../shared/claude/loop.ts'
import { fitsStructuredOutputs, strictSchema } from '../shared/claude/schema.ts'
import { isAdaptive, mustThink } from '../shared/claude/thinking.ts'
import { type Block, type ConverseTurn, textBlock } from './block.ts'
import { type Family, familyOf } from './family.ts'
import { type Reasoning, reasoningOf } from './reasoning.ts'
import { toolsOf } from './tools.ts'
import { historyOf, isResult, isThought } from './turns.ts'

const MAX_CACHE_POINTS = 4
const NO_CALLS = '<system-reminder>Answer without calling a tool.</system-reminder>'

/**
 * Equal requests give equal bytes, and cacheable parts (tools, system, messages) come first, so that a longer
 * conversation begins with the bytes of the shorter one.
 */
export function encode(request: Readonly<ChatRequest>, target: Target, stream: boolean): WireRequest {
  const { mapping } = target
  const family = familyOf(mapping)
  const forcible = family.forcible && !(family.maker === 'anthropic' && mustThink(request, mapping))
  const form = answerFormOf(request, mapping, forcible)
  const { system, turns, toolsUsed } = historyOf(request.messages, target)
  const tools = toolsOf(request, target, { forcible, answer: form.toolSchema, used: toolsUsed })
  const loop = openLoop(turns, isResult)
  const circumstances = { forced: tools.forced, loopBeganWithThought: beganWithThought(loop, isThought) }
  const reasoning = reasoningOf(request, mapping, circumstances)
  if (!reasoning.replays) dropThoughts(loop, isThought)
  if (form.instruction) system.push(textBlock(form.instruction))
  endTurns(turns, endsInAnswer(request.messages) && takesPrefill(target, family, reasoning), tools.forbidden)
  const cacheMark = checkedMark(tools.toolConfig, system, turns)

  const { service_tier: tier, user } = request
  const inferenceConfig = inferenceConfigOf(request, target, family, reasoning)
  const fields: Json = {
    ...reasoning.fields,
    ...(tools.nativeChoice && { tool_choice: tools.nativeChoice }),
    ...topKOf(request, target, family, reasoning),
  }
  if (form.format) fields.output_config = { ...(fields.output_config as Json), format: form.format }
  const body: Json = {
    ...(tools.toolConfig && { toolConfig: tools.toolConfig }),
    ...(system.length > 0 && { system }),
    messages: turns,
    ...(!isEmpty(inferenceConfig) && { inferenceConfig }),
    ...(form.outputConfig && { outputConfig: form.outputConfig }),
    ...(!isEmpty(fields) && { additionalModelRequestFields: fields }),
    ...((tier === 'flex' || tier === 'priority') && { serviceTier: { type: tier } }),
    ...(user && { requestMetadata: { user: metadata(user) } }),
  }
  // A whole answer is decoded as a stream of one piece (S19).
  const streams = stream && (!tools.toolConfig || family.streamsTools)
  const path = `/model/${pathSegment(mapping.externalId)}/converse${streams ? '-stream' : ''}`
  const sent: WireRequest = { path, body: wellFormed(body) }
  const output = outputOf(request, mapping, reasoning, stream && !streams)
  if (output) sent.output = output
  if (cacheMark) sent.cacheMark = cacheMark
  return sent
}

function outputOf(
  { max_completion_tokens: newer, max_tokens: older }: Readonly<ChatRequest>,
  { maxOutput }: Mapping,
  { configurable, maxTokens }: Reasoning,
  whole: boolean,
): WireRequest['output'] {
  // A budget requires a limit: without one of the caller or the mapping it is a default.
  const own = (newer ?? older ?? maxOutput) === undefined ? maxTokens : undefined
  const limit = configurable ? own : Number.POSITIVE_INFINITY
  if (limit === undefined && !whole) return undefined
  return { ...(limit !== undefined && { limit }), ...(whole && { whole }) }
}

const isEmpty = (object: Json): boolean => Object.keys(object).length === 0

/** Only older Claude models continue an assistant turn, and not while they think. */
const takesPrefill = ({ mapping }: Target, { maker, samples }: Family, { thinks }: Reasoning): boolean =>
  maker === 'anthropic' && samples && !thinks && !isAdaptive(mapping)

/**
 * A final assistant turn is a prefill: it must not end in white space. For models without prefill, a user turn asks to
 * continue. An instruction not to call tools comes last, after everything cacheable.
 */
function endTurns(turns: ConverseTurn[], prefill: boolean, forbidden: boolean): void {
  const last = turns.at(-1)!
  if (last.role === 'assistant' && prefill) {
    const index = last.content.findLastIndex(block => 'text' in block)
    if (index >= 0) last.content[index] = textBlock(String(last.content[index]!.text).trimEnd())
    return
  }
  if (last.role === 'assistant') turns.push({ role: 'user', content: [textBlock('Continue.')] })
  if (forbidden) turns.at(-1)!.content.push(textBlock(NO_CALLS))
}

/** Claude accepts temperature or top_p, and neither while thinking; other models accept both. */
function inferenceConfigOf(
  request: Readonly<ChatRequest>,
  { mapping }: Target,
  { maker, samples }: Family,
  { thinks, maxTokens, configurable }: Reasoning,
): Json {
  if (!configurable) return {}
  const config: Json = {}
  if (maxTokens !== undefined) config.maxTokens = maxTokens
  if (request.stop) config.stopSequences = request.stop
  if (thinks || !samples) return config
  const value = (name: 'temperature' | 'top_p') =>
    mapping.parameters?.has(name) === false ? undefined : (request[name] ?? undefined)
  const temperature = value('temperature')
  const topP = value('top_p')
  if (temperature !== undefined) config.temperature = unit(temperature)
  if (topP !== undefined && !(maker === 'anthropic' && temperature !== undefined)) config.topP = unit(topP)
  return config
}

/** The wire has no field for it; one maker's models accept it under their own name. */
function topKOf({ top_k }: Readonly<ChatRequest>, { mapping }: Target, family: Family, reasoning: Reasoning): Json {
  const samples = family.samples && reasoning.configurable && !reasoning.thinks
  if (top_k === undefined || !samples || mapping.parameters?.has('temperature') === false) return {}
  return family.maker === 'amazon' ? { inferenceConfig: { topK: top_k } } : { top_k }
}

const unit = (value: number): number => Math.min(Math.max(value, 0), 1)

/** A value for the provider's logs: at most 256 characters of its alphabet. */
const metadata = (text: string): string => text.slice(0, 256).replace(/[^a-zA-Z0-9 ._:/=+$@-]/g, '_')

/** The longest mark of all cache points. Throws 400 for more of them than the wire allows. */
function checkedMark(toolConfig: Json | undefined, system: Block[], turns: ConverseTurn[]): CacheMark | undefined {
  const lists = [(toolConfig?.tools ?? []) as Block[], system, ...turns.map(({ content }) => content)]
  let count = 0
  let longest: CacheMark | undefined
  for (const list of lists) {
    for (const { cachePoint: point } of list) {
      if (!isObject(point)) continue
      count += 1
      longest = point.ttl === '1h' ? '1h' : (longest ?? '5m')
    }
  }
  if (count > MAX_CACHE_POINTS) {
    const allowed = `at most ${MAX_CACHE_POINTS} cache_control breakpoints are allowed over tools, system and messages`
    throw errors.invalidParameters(`This request sets ${count} cache_control breakpoints; ${allowed}.`, 'cache_control')
  }
  return longest
}

interface AnswerForm {
  /** `outputConfig`. */
  readonly outputConfig?: Json
  /** `output_config.format` among Claude's own fields. */
  readonly format?: Json
  /** Input of the tool that gives the answer. */
  readonly toolSchema?: Json
  /** The last block of `system`. */
  readonly instruction?: string
}

/**
 * Chooses a form that the model has. `forcible`: whether the model can be forced to call a tool in this request.
 */
export function answerFormOf(request: Readonly<ChatRequest>, mapping: Mapping, forcible: boolean): AnswerForm {
  const format = request.response_format
  if (format?.type === 'json_object') return { instruction: ANY_JSON }
  if (format?.type !== 'json_schema') return {}
  const { name, description, strict } = format.json_schema
  const schema: Json = wellFormed(format.json_schema.schema)
  const { maker, takesSchemas } = familyOf(mapping)
  const isHeld = maker !== 'anthropic' || fitsStructuredOutputs(schema, strict === true)
  if (isHeld && takesSchemas && mapping.supports.has('structured_outputs')) {
    if (maker === 'anthropic') return { format: { type: 'json_schema', schema: strictSchema(schema) } }
    const jsonSchema = {
      schema: JSON.stringify(schema),
      name: name.slice(0, 64).replace(/[^a-zA-Z0-9_-]/g, '_'),
      ...(description && { description }),
    }
    return { outputConfig: { textFormat: { type: 'json_schema', structure: { jsonSchema } } } }
  }
  const { type = 'object' } = schema
  const hasTools = mapping.supports.has('tools') && mapping.parameters?.has('tool_choice') !== false
  if (forcible && hasTools && type === 'object') return { toolSchema: { type, ...schema } }
  return { instruction: schemaInstruction(schema) }
}
