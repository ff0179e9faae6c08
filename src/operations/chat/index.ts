/** Chat: `POST /v1/chat/completions`, and every client wire that decodes to it. */

import type { ChatRequest, Message, ReasoningEffort } from '../../core/chat-request.ts'
import { effortOf } from '../../core/effort.ts'
import type { Event } from '../../core/event.ts'
import type { Terms } from '../../core/money.ts'
import { type Operation, takes } from '../../core/operation.ts'
import type { FanOut, Mapping, Target } from '../../core/translator.ts'
import type { Usage } from '../../core/usage.ts'
import { errors } from '../../lib/error.ts'
import { promptAudioTokens } from '../../metering/audio.ts'
import { chatOverImages } from '../images/bridge.ts'
import { imageTerms } from '../images/index.ts'
import { imageUsage } from '../images/tokens.ts'
import { hasTokenRates } from '../rates.ts'
import { addressed } from './addressed.ts'
import { autoCached } from './auto-cache.ts'
import { demo } from './demo.ts'
import { measureMedia, mediaOf } from './media.ts'
import { promptSize, reasoningSize, sealedSize } from './prompt-size.ts'
import { requirements } from './requirements.ts'
import { routed } from './routed.ts'

/** Each prompt is a request of its own; choices are renumbered in the order of the prompts. */
export const promptFanOut: FanOut<'chat'> = {
  ordered: true,
  count: prompts,
  split(request) {
    if (!request.prompts) return [request]
    const { prompts: _, messages, ...rest } = request
    const shared = messages.filter(isShared)
    const own = messages.filter(message => !isShared(message))
    return own.map((message): ChatRequest => Object.assign({ messages: [...shared, message] }, rest))
  },
  /** Choices of the first prompt, then those of the second. */
  join(answers) {
    const width = Math.max(...answers.map(choicesIn))
    return answers.flatMap((events, place) => events.map(event => moved(event, place * width)))
  },
}

/** Every prompt begins with the system prompts of its virtual model. */
const isShared = ({ role }: Message): boolean => role === 'system'

const choicesIn = (events: readonly Event[]): number =>
  events.reduce((most, event) => ('choice' in event ? Math.max(most, event.choice + 1) : most), 0)

const moved = (event: Event, by: number): Event =>
  'choice' in event && by > 0 ? Object.assign({}, event, { choice: event.choice + by }) : event

/** Priced by tokens; an image or audio in a message is estimated in tokens too. */
export const chat: Operation<'chat'> = {
  name: 'chat',
  impliedBy: ({ output }) => output.includes('text') && !output.includes('embedding'),
  isPriced: (price, { output }) => hasTokenRates(price, output.includes('text')),
  requirements,
  promptSize,
  reasoningSize,
  sealedSize,
  prompts,
  output: request => ({ choices: (request.n ?? 1) * prompts(request), limit: request.max_tokens ?? undefined }),
  bounded,
  inspect: ({ messages }) => measureMedia(messages),
  media: ({ messages }) => mediaOf(messages),
  extras(request, mapping) {
    const usage: Usage = {}
    const searches = searchesOf(request)
    if (searches > 0) usage.web_search = searches
    const { output } = mapping.model
    if (!output.includes('image')) return usage
    const { n: images, image_quality: quality } = request.image_config ?? {}
    const n = (images ?? 1) * (request.n ?? 1)
    return Object.assign(usage, output.includes('text') ? { output_images: n } : imageUsage({ n, quality }, mapping))
  },
  unmeasured({ messages }, mapping) {
    const { unmeasuredTokens = 0, unmeasuredAudio = 0 } = mediaOf(messages)
    const audio = promptAudioTokens(unmeasuredAudio, mapping?.model)
    const prompt = unmeasuredTokens + audio
    return prompt === 0 ? undefined : { prompt, ...(audio > 0 && { input_audio: audio }) }
  },
  loops: ({ web_search, tools }) =>
    web_search === true || tools?.some(({ type }) => type === 'web_search' || type === 'tool_search') === true,
  terms({ service_tier, image_config: image }) {
    const tier = service_tier ?? undefined
    if (!image) return tier === undefined || tier === 'auto' ? noTerms : { tier }
    const { image_quality: quality, image_size: size, aspect_ratio } = image
    return imageTerms({ quality, size, aspect_ratio, service_tier: tier })
  },
  /** Models that only produce images, or have only wires for images, answer chat with them. */
  bridge: (wires, { output, operations }) =>
    !output.includes('image') || (wires.has('chat') && operations?.includes('chat') !== false)
      ? undefined
      : chatOverImages(wires),
  adapted(request, target, caches) {
    const { mapping } = target
    refuseHeldFiles(request, target)
    const reasoning = adaptedReasoning(withinOutput(permitted(addressed(request, target), target), mapping), mapping)
    return caches ? autoCached(reasoning, mapping) : reasoning
  },
  routed,
  fanOut: promptFanOut,
  demo,
  tuning: {
    temperature: 'temperature',
    top_p: 'top_p',
    frequency_penalty: 'frequency_penalty',
    presence_penalty: 'presence_penalty',
    response_format: 'response_format',
    tool_choice: 'tool_choice',
    parallel_tool_calls: 'parallel_tool_calls',
    reasoning_effort: 'reasoning_effort',
    reasoning: 'reasoning_effort',
    effort: 'effort',
    verbosity: 'verbosity',
    service_tier: 'service_tier',
    user: 'user',
    prompt_cache_key: 'prompt_cache_key',
    prompt_cache_retention: 'prompt_cache_retention',
    prompt_cache_options: 'prompt_cache_options',
  },
}

const noTerms: Terms = {}

function bounded(request: Readonly<ChatRequest>, tokens: number): ChatRequest {
  return { ...request, max_tokens: tokens }
}

/** Leaves out tools that the caller forbids, where the provider takes no choice of tools and would let its model call them. */
function permitted(request: Readonly<ChatRequest>, { mapping, provider }: Target): Readonly<ChatRequest> {
  if (request.tool_choice !== 'none') return request
  if (takes(mapping, 'tool_choice') && !provider.quirks.drop.has('tool_choice')) return request
  const { tools: _, tool_choice: _choice, ...rest } = request
  return rest
}

/** Lowers a limit that the model cannot reach, which providers refuse: clients must send one and may not know the model. */
const withinOutput = (request: Readonly<ChatRequest>, { maxOutput = Infinity }: Mapping): Readonly<ChatRequest> =>
  Number(request.max_tokens) > maxOutput ? bounded(request, maxOutput) : request

function prompts({ messages, prompts }: Readonly<ChatRequest>): number {
  return prompts ? messages.filter(message => !isShared(message)).length : 1
}

/** Number of searches to hold for, as far as the request says: at least one when search is allowed. */
function searchesOf({ web_search, tools }: Readonly<ChatRequest>): number {
  const tool = tools?.find(tool => tool.type === 'web_search')
  if (!tool) return web_search === true ? 1 : 0
  return Math.max(1, Math.min(tool.max_uses ?? 1, MAX_SEARCHES))
}
const MAX_SEARCHES = 10

/** Name in a manifest's `native_fields` that allows it. */
const FIELD = 'file_id'

/**
 * Throws a 400 for a file id of the operator's account: no client can have uploaded it, and no price covers its
 * contents. Another target may use the caller's own key.
 */
function refuseHeldFiles({ messages }: Readonly<ChatRequest>, { credential, provider, translator }: Target): void {
  const isOwn = credential?.source === 'byok' || provider.owner !== undefined || provider.nativeFields?.includes(FIELD)
  if (isOwn) return
  for (let i = 0; i < messages.length; i++) {
    const { content } = messages[i]!
    if (!Array.isArray(content)) continue
    for (let j = 0; j < content.length; j++) {
      const part = content[j]!
      const id = part.type === 'file' ? part.file.file_id : undefined
      if (!id || translator.publicFiles?.test(id)) continue
      throw errors.ownKeyOnly(`messages[${i}].content[${j}].file.${FIELD}`).with({ failover: true })
    }
  }
}

/** In ascending order. */
const EFFORTS: readonly ReasoningEffort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** The nearest of the mapping's efforts, if it lists them; none for a mapping without reasoning. */
function adaptedReasoning(request: Readonly<ChatRequest>, mapping: Mapping): Readonly<ChatRequest> {
  if (!request.lenient_reasoning) return request
  const { lenient_reasoning: _, reasoning, reasoning_effort: effort, ...rest } = request
  if (!mapping.supports.has('reasoning')) return rest
  const requested = effortOf(request, mapping)
  const listed = mapping.reasoningEfforts
  if (listed.length === 0 || requested == null) {
    return Object.assign(rest, reasoning && { reasoning }, effort != null && { reasoning_effort: effort })
  }
  return Object.assign(rest, { reasoning_effort: nearest(requested, listed) })
}

function nearest(asked: ReasoningEffort, listed: readonly string[]): ReasoningEffort {
  const place = EFFORTS.indexOf(asked)
  const offered = EFFORTS.filter(effort => listed.includes(effort))
  const distance = (effort: ReasoningEffort) => Math.abs(EFFORTS.indexOf(effort) - place)
  return offered.reduce((best, effort) => (distance(effort) < distance(best) ? effort : best), offered[0] ?? asked)
}
