/** Chat: `POST /v1/chat/completions`, and every client wire that decodes to it. */

import type { ChatRequest } from '../../core/chat-request.ts'
import type { Terms } from '../../core/money.ts'
import type { Operation } from '../../core/operation.ts'
import type { Usage } from '../../core/usage.ts'
import { audioTokensOf } from '../../metering/audio-tokens.ts'
import { chatOverImages } from '../images/bridge.ts'
import { imageTerms } from '../images/index.ts'
import { imageUsage } from '../images/tokens.ts'
import { hasTokenRates } from '../rates.ts'
import { addressed } from './addressed.ts'
import { autoCached } from './auto-cache.ts'
import { demo } from './demo.ts'
import { refuseHeldFiles } from './held-files.ts'
import { measureMedia, mediaOf } from './media.ts'
import { promptSize, reasoningSize, sealedSize } from './prompt-size.ts'
import { promptFanOut } from './prompts.ts'
import { adaptedReasoning } from './reasoning.ts'
import { requirements } from './requirements.ts'
import { routed } from './routed.ts'

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
  bounded: (request, tokens) => ({ ...request, max_tokens: tokens }),
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
    const audio = audioTokensOf(unmeasuredAudio, mapping?.model)
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
    const reasoning = adaptedReasoning(addressed(request, target), mapping)
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

function prompts({ messages, prompts }: Readonly<ChatRequest>): number {
  return prompts ? messages.length : 1
}

/** Number of searches to hold for, as far as the request says: at least one when search is allowed. */
function searchesOf({ web_search, tools }: Readonly<ChatRequest>): number {
  const tool = tools?.find(tool => tool.type === 'web_search')
  if (!tool) return web_search === true ? 1 : 0
  return Math.max(1, Math.min(tool.max_uses ?? 1, MAX_SEARCHES))
}
const MAX_SEARCHES = 10
