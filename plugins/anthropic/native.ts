/**
 * A client's own Messages body, for a provider of the same wire: only necessary changes, so that no field is lost
 * (docs/contract.md#messages).
 */
import {
  type ChatRequest,
  effortOf,
  errors,
  isObject,
  isText,
  type Json,
  type LoadedMedia,
  listIn,
  objectIn,
  type Target,
  textIn,
  toolsIn,
  typeOfBase64,
  type WireRequest,
} from '../../src/plugin.ts'
import { mediaIn } from '../shared/addresses.ts'
import type { Block } from '../shared/claude/blocks.ts'
import { beganWithThought, dropThoughts, openLoop } from '../shared/claude/loop.ts'
import { isAdaptive, MIN_BUDGET, thinkingOf } from '../shared/claude/thinking.ts'
import { GATEWAY_ONLY, paysItself } from '../shared/operator-pays.ts'
import { toWireName } from '../shared/tool-name.ts'
import { BETA_HEADER, betaHeader, betasOf } from './betas.ts'
import { breakpointsIn, checkBreakpoints } from './breakpoints.ts'
import { unsourced } from './citations.ts'
import { acceptsSampling, messagesRequest } from './encode.ts'
import { type NativeTurn, nativeTurns } from './native-turns.ts'
import { checkTools, checkTurns, onOperator } from './operator-pays.ts'
import { isResult, isThought } from './turns.ts'

/** Puts files in place of the addresses of a body (see `mediaIn`). */
export const withMedia = mediaIn({
  // A server that the body names is an address, too.
  roots: ['messages', 'system', 'mcp_servers'],
  opaque: new Set(['input', 'input_schema', 'tool', 'tools']),
  inlined(part, media) {
    const { type, source } = part
    if ((type !== 'image' && type !== 'document') || !isObject(source) || source.type !== 'url') return undefined
    const file = media.get(textIn(source.url) ?? '')
    return file && { ...part, source: sourceOf(file, type) }
  },
  isAddress: (field, { type }, at) => field === 'url' && (type === 'url' || at === 'source'),
})

function sourceOf({ type, base64, name }: LoadedMedia, part: 'image' | 'document'): Json {
  const isDocument = part === 'document' && isText(typeOfBase64(base64, type, name))
  if (!isDocument) return { type: 'base64', media_type: type, data: base64 }
  return { type: 'text', media_type: 'text/plain', data: Buffer.from(base64, 'base64').toString('utf8') }
}

/** Chat request fields that the Messages endpoint tolerates and the provider would reject. */
const NOT_OF_MESSAGES = [
  ...GATEWAY_ONLY,
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'reasoning',
  'user',
]

/** `whole` has passed the endpoint's schema. The result shares unchanged parts with it. */
export function native(
  whole: Readonly<Json>,
  input: Readonly<ChatRequest>,
  target: Target,
  stream: boolean,
  clientHeaders?: Readonly<Record<string, string>>,
): WireRequest {
  if (whole.speed === 'fast' && target.credential?.source !== 'byok') {
    throw errors.unpriced(target.mapping.model.id, target.provider.id, 'fast answers of ').with({ failover: true })
  }
  const operatorPays = !paysItself(target)
  const body = operatorPays ? unsourced(whole) : whole
  if (operatorPays) {
    checkTurns(body.messages as Json[], target)
    checkTools(body, target)
  }
  const { messages, system } = nativeTurns(body.messages as Json[], target)
  const given: Json = { ...body, model: target.mapping.externalId, messages }
  for (const name of NOT_OF_MESSAGES) delete given[name]
  const sent = operatorPays ? onOperator(given, target) : given
  lower(sent, input.max_tokens)
  fitThinking(sent, input, target)
  // A thinking budget requires the thought that began the loop; without that thought the loop continues without
  // thinking.
  const loop = loopOf(messages)
  if (objectIn(sent.thinking).type === 'enabled' && beganWithThought(loop, isThought) === false) delete sent.thinking
  if (isObject(body.thinking) && !sent.thinking) dropThoughts(loop, isThought)
  if (system.length > 0) sent.system = [...blocksOf(sent.system), ...system]
  if (Array.isArray(sent.tools)) sent.tools = sent.tools.map(toolOf)
  if (sent.tool_choice) sent.tool_choice = spelt(sent.tool_choice as Json)
  if (!acceptsSampling(target, 'temperature')) {
    delete sent.temperature
    delete sent.top_k
  }
  if (!acceptsSampling(target, 'top_p')) delete sent.top_p
  const tier = tierOf(sent.service_tier, target)
  if (tier === undefined) delete sent.service_tier
  else sent.service_tier = tier
  const tools = toolsIn(sent).map(({ tool }) => tool)
  const breakpoints = breakpointsIn(tools, sent.system, messages)
  if (input.auto_cached && sent.cache_control == null && breakpoints === 0) markPrefix(sent)
  else checkBreakpoints(breakpoints)
  if (stream) sent.stream = true
  else if (sent.stream !== false) delete sent.stream
  const headers = betaHeader(target, betasOf(sent, target, clientHeaders?.[BETA_HEADER]))
  return messagesRequest(sent, headers, target.mapping)
}

/** Applies a lower output limit set by the gateway: thinking must fit into it, or is removed. */
function lower(sent: Json, limit: number | null | undefined): void {
  if (limit == null || !(Number(sent.max_tokens) > limit)) return
  sent.max_tokens = limit
  const thinking = sent.thinking as Json | null | undefined
  if (thinking?.type !== 'enabled') return
  if (limit > MIN_BUDGET)
    sent.thinking = { ...thinking, budget_tokens: Math.min(Number(thinking.budget_tokens), limit - 1) }
  else delete sent.thinking
}

/** Fits thinking and effort to the model: clients may assume another one. Some models take no budget, some nothing else. */
function fitThinking(sent: Json, input: Readonly<ChatRequest>, target: Target): void {
  const { mapping } = target
  const { type, budget_tokens: _, ...rest } = objectIn(sent.thinking)
  const { effort, ...config } = objectIn(sent.output_config)
  const nearest = effortOf(input, mapping)
  let wanted = effort
  if (isAdaptive(mapping)) {
    // Models that take sampling take a budget, too.
    const isOlder = type === 'enabled' && !acceptsSampling(target, 'temperature')
    if (isOlder) sent.thinking = { ...rest, type: 'adaptive' }
    if (isOlder ? effort == null : effort != null && !mapping.reasoningEfforts.includes(String(effort)))
      wanted = nearest
  } else {
    if (type === 'adaptive' || (type === 'enabled' && !mapping.supports.has('reasoning'))) {
      sent.thinking = thinkingOf(input, mapping, { forced: false, loopBeganWithThought: undefined }).thinking
      if (!sent.thinking) delete sent.thinking
    }
    if (!mapping.supports.has('effort')) wanted = undefined
  }
  if (wanted === effort) return
  sent.output_config = { ...config, ...(wanted != null && { effort: wanted }) }
  if (Object.keys(sent.output_config as Json).length === 0) delete sent.output_config
}

/** The tool loop at the end of turns of this wire. */
export const loopOf = (turns: readonly NativeTurn[]): NativeTurn[] => openLoop(turns, isResult)

/** Also accepts the tiers of chat requests; undefined for a tier unknown to the wire or the target. */
function tierOf(tier: unknown, { mapping: { parameters } }: Target): string | undefined {
  if (parameters?.has('service_tier') === false) return undefined
  if (tier === 'default') return 'standard_only'
  return tier === 'auto' || tier === 'standard_only' ? tier : undefined
}

const blocksOf = (system: unknown): unknown[] =>
  typeof system === 'string' ? [{ type: 'text', text: system }] : Array.isArray(system) ? system : []

/** Answers are decoded for escaped names, so names that look escaped are escaped; others stay unchanged. */
function spelt<T extends Json | Block>(named: T): T {
  if (typeof named.name !== 'string') return named
  const name = toWireName(named.name)
  return name === named.name ? named : { ...named, name }
}

/** The wire defines the names of tools with a type. */
const toolOf = (tool: Json): Json => (tool.type == null || tool.type === 'custom' ? spelt(tool) : tool)

const MARK = { type: 'ephemeral' }
/** Blocks that may carry a mark. */
const MARKABLE = new Set(['text', 'image', 'document', 'tool_result'])
/** Marked turns; with the marks of tools and system this is the limit of the wire. */
const MAX_TURNS = 2

/**
 * Marks the last tool, the end of the system, and the end of the last two user turns. Changes `body`, not the objects
 * it shares.
 */
function markPrefix(body: Json): void {
  const tools = listIn(body.tools)
  const last = tools.at(-1)
  if (isObject(last)) body.tools = [...tools.slice(0, -1), marked(last)]
  if (body.system !== undefined) body.system = markedEnd(body.system)
  const turns = [...listIn(body.messages)]
  let left = MAX_TURNS
  for (let at = turns.length - 1; at >= 0 && left > 0; at--) {
    const turn = turns[at]
    if (!isObject(turn) || turn.role !== 'user') continue
    turns[at] = Object.assign({}, turn, { content: markedEnd(turn.content) })
    left -= 1
  }
  body.messages = turns
}

const marked = (block: Json): Json => Object.assign({}, block, { cache_control: MARK })

/** Content with a mark on its last block, if that may carry one. */
function markedEnd(content: unknown): unknown {
  if (typeof content === 'string') return content === '' ? content : [marked({ type: 'text', text: content })]
  const blocks = listIn(content)
  const end = blocks.at(-1)
  const isMarkable = isObject(end) && MARKABLE.has(textIn(end.type) ?? '') && end.text !== ''
  return isMarkable ? [...blocks.slice(0, -1), marked(end)] : content
}
