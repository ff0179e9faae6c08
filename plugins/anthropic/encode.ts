/** A chat request as a Messages request (docs/contributing/wire-sources.md#anthropic). */
import {
  type ChatRequest,
  endsInAnswer,
  type Json,
  type Mapping,
  schemaInstruction,
  type Target,
  type WireRequest,
} from '../../src/plugin.ts'
import { ANY_JSON, nonObjectInstruction } from '../shared/any-json.ts'
import { pricesHours } from '../shared/breakpoints.ts'
import { type Block, isVisible, textBlock } from '../shared/claude/blocks.ts'
import { beganWithThought, dropThoughts, openLoop } from '../shared/claude/loop.ts'
import { fitsStructuredOutputs, strictSchema } from '../shared/claude/schema.ts'
import { cannotForce, isAdaptive, mustThink, type Thinking, thinkingOf } from '../shared/claude/thinking.ts'
import { betaHeader, FILES_BETA, headerOf, isFile } from './betas.ts'
import { breakpointsIn, cacheMarkIn, checkBreakpoints, withoutHours } from './breakpoints.ts'
import { answerSchema, isForced, schemaByTool, toolsOf } from './tools.ts'
import { historyOf, isResult, isThought, type MessagesTurn } from './turns.ts'

/** From this API version on, requests have no sampling parameters. */
const WITHOUT_SAMPLING = '2026-10-21'

/**
 * Equal requests give equal bytes, and cacheable parts (tools, system, messages) come first, so that a longer
 * conversation begins with the bytes of the shorter one.
 */
export function encode(request: Readonly<ChatRequest>, target: Target, stream: boolean): WireRequest {
  const { mapping } = target
  const { tools, tool_choice } = toolsOf(request, target)
  const forced = isForced(tool_choice)
  if (forced && mustThink(request, mapping)) {
    throw cannotForce(mapping, schemaByTool(request, target) ? 'response_format' : 'tool_choice')
  }
  const { system, turns } = historyOf(request.messages, target)
  const loop = openLoop(turns, isResult)
  const thinking = thinkingOf(request, mapping, { forced, loopBeganWithThought: beganWithThought(loop, isThought) })
  if (!thinking.replays) dropThoughts(loop, isThought)
  const { response_format: format } = request
  if (format?.type === 'json_object') system.push(textBlock(ANY_JSON))
  const schema = mapping.supports.has('structured_outputs') ? answerSchema(request) : undefined
  const isHeld =
    schema && format?.type === 'json_schema' && fitsStructuredOutputs(schema, format.json_schema.strict === true)
  const instruction = schema ? !isHeld && schemaInstruction(schema) : nonObjectInstruction(request)
  if (instruction) system.push(textBlock(instruction))
  endTurns(turns, endsInAnswer(request.messages) && !thinking.on && !isAdaptive(mapping))
  checkBreakpoints(breakpointsIn(tools, system, turns))

  const outputConfig = outputConfigOf(request, isHeld ? schema : undefined, thinking)
  const tier = request.service_tier === 'default' ? 'standard_only' : request.service_tier
  const body: Json = {
    model: mapping.externalId,
    ...(tools && { tools }),
    ...(system.length > 0 && { system: systemOf(system) }),
    messages: turns,
    max_tokens: thinking.maxTokens,
    ...(tool_choice && { tool_choice }),
    ...(thinking.thinking && { thinking: thinking.thinking }),
    ...(outputConfig && { output_config: outputConfig }),
    ...(!thinking.on && samplingOf(request, target)),
    ...stopsOf(request),
    ...(request.user && { metadata: { user_id: request.user } }),
    ...((tier === 'standard_only' || tier === 'auto') && { service_tier: tier }),
    ...(stream && { stream: true }),
  }
  const sent = messagesRequest(body, usesFiles(turns) ? betaHeader(target, [FILES_BETA]) : undefined, mapping)
  // The wire requires a limit: without one of the caller or the mapping it is a default.
  const hasLimit = (request.max_completion_tokens ?? request.max_tokens ?? mapping.maxOutput) !== undefined
  if (!hasLimit) sent.output = { limit: thinking.maxTokens }
  return sent
}

/** A finished body with the headers that it needs, and with what it marks. */
export function messagesRequest(
  body: Json,
  headers: Record<string, string> | undefined,
  mapping: Mapping,
): WireRequest {
  const mark = cacheMarkIn(body)
  const isShort = mark === '1h' && !pricesHours(mapping)
  const made: WireRequest = { path: '/messages', body: isShort ? withoutHours(body) : body }
  if (headers) made.headers = headers
  if (mark) made.cacheMark = isShort ? '5m' : mark
  return made
}

const systemOf = (blocks: Block[]): string | Block[] =>
  blocks.length === 1 && !blocks[0]!.cache_control ? (blocks[0]!.text as string) : blocks

/**
 * A final assistant turn is a prefill: it must not end in white space. For models without prefill, a user turn asks to
 * continue.
 */
function endTurns(turns: MessagesTurn[], prefill: boolean): void {
  const last = turns.at(-1)!
  if (last.role !== 'assistant') return
  if (!prefill) {
    turns.push({ role: 'user', content: [textBlock('Continue.')] })
    return
  }
  const block = last.content.at(-1)!
  if (block.type === 'text') last.content[last.content.length - 1] = { ...block, text: String(block.text).trimEnd() }
}

/** Newer models accept either temperature or top_p, newer API versions neither (docs/contributing/wire-sources.md#anthropic). */
function samplingOf(request: Readonly<ChatRequest>, target: Target): Json {
  const { temperature, top_p, top_k } = request
  const samples = acceptsSampling(target, 'temperature')
  const k = top_k !== undefined && samples ? { top_k } : {}
  if (temperature != null && samples) return { temperature: Math.min(Math.max(temperature, 0), 1), ...k }
  return top_p != null && acceptsSampling(target, 'top_p') ? { top_p, ...k } : k
}

/** The wire rejects stop sequences of only white space. */
function stopsOf({ stop = [] }: Readonly<ChatRequest>): Json {
  const sequences = stop.filter(isVisible)
  return sequences.length > 0 ? { stop_sequences: sequences } : {}
}

/** False for the API version that has no sampling parameters, and where the mapping does not list this one. */
export const acceptsSampling = ({ mapping, provider }: Target, name: 'temperature' | 'top_p'): boolean =>
  headerOf(provider.headers, 'anthropic-version')?.value !== WITHOUT_SAMPLING && mapping.parameters?.has(name) !== false

function outputConfigOf(
  request: Readonly<ChatRequest>,
  schema: Json | undefined,
  thinking: Thinking,
): Json | undefined {
  const effort = request.effort ?? thinking.effort
  if (!effort && !schema) return undefined
  return {
    ...(effort && { effort }),
    ...(schema && { format: { type: 'json_schema', schema: strictSchema(schema) } }),
  }
}

const usesFiles = (turns: readonly MessagesTurn[]): boolean => turns.some(turn => turn.content.some(isFile))
