/** What planning, billing and counting must know of each operation, so that none of them asks which one it is. */
import type { Model } from './catalog.ts'
import { type Media, mediaOf } from './media.ts'
import type { Terms } from './money.ts'
import type { ChatRequest, EmbeddingRequest, Op, Ops } from './ops.ts'
import { TOKEN_CHARACTERS, type Usage } from './usage.ts'

export interface Operation<O extends Op = Op> {
  /** Whether a model has this operation, by what it puts out; its wires are no answer, a provider has them for all. */
  servedBy(model: Model): boolean
  /** Characters of a request that a model reads; media counts as nothing here. */
  promptCharacters(request: Readonly<Ops[O]>): number
  /** How many answers a request wants, and the tokens that its caller bounds each by. Absent when answers count none. */
  output?(request: Readonly<Ops[O]>): OutputBound
  /** The same request with a lower bound on each answer. Present where `output` is. */
  bounded?(request: Readonly<Ops[O]>, tokens: number): Ops[O]
  /** What a request holds besides text. */
  media?(request: Readonly<Ops[O]>): Media
  /** How long what is read may be kept in the provider's cache, at the price of that; undefined when it is not marked. */
  cacheMark?(request: Readonly<Ops[O]>): '5m' | '1h' | undefined
  /** What the answer may be charged for besides tokens, as far as the request tells. */
  extras?(request: Readonly<Ops[O]>, model: Model): Usage
  /** What the price depends on besides usage, as it was asked for. */
  terms?(request: Readonly<Ops[O]>): Terms
  /** Fields that only tune an answer, with the parameter that a mapping must list to be sent them. */
  readonly tuning: Readonly<Partial<Record<keyof Ops[O], string>>>
}

export interface OutputBound {
  readonly choices: number
  /** Tokens of each; undefined when the caller sets none. */
  readonly limit: number | undefined
}

const chat: Operation<'chat'> = {
  servedBy: model => model.open === true || !makesVectors(model),
  promptCharacters({ messages, tools }) {
    let sum = 0
    for (const { content, tool_calls: calls } of messages) {
      if (typeof content === 'string') sum += content.length
      else if (content) for (const part of content) sum += part.type === 'text' ? part.text.length : 0
      for (const call of calls ?? []) {
        sum +=
          call.type === 'function'
            ? call.function.name.length + call.function.arguments.length
            : call.custom.name.length + call.custom.input.length
      }
    }
    return sum + (tools?.length ? JSON.stringify(tools).length : 0)
  },
  output: ({ max_tokens: limit, n }) => ({ choices: n ?? 1, limit: limit ?? undefined }),
  bounded: (request, tokens) => ({ ...request, max_tokens: tokens }),
  media: ({ messages }) => mediaOf(messages),
  cacheMark({ messages, tools }) {
    let mark: '5m' | '1h' | undefined
    const see = (control: { ttl?: '5m' | '1h' | undefined } | undefined) => {
      if (control && mark !== '1h') mark = control.ttl ?? '5m'
    }
    for (const { content, tool_result_cache_control: ofResult } of messages) {
      see(ofResult)
      if (Array.isArray(content)) for (const part of content) if (part.type === 'text') see(part.cache_control)
    }
    for (const tool of tools ?? []) if (tool.type === 'function') see(tool.cache_control)
    return mark
  },
  extras(request, model) {
    const usage: Usage = {}
    const searches = searchesOf(request)
    if (searches > 0) usage.web_search = searches
    if (model.output.includes('image')) usage.drawn = (request.image_config?.n ?? 1) * (request.n ?? 1)
    return usage
  },
  terms({ service_tier: tier, image_config: picture }) {
    if (!picture) return tier == null || tier === 'auto' ? noTerms : { tier }
    const { image_quality: quality, image_size: size } = picture
    const both = quality && size && `${quality}/${size}`
    const sizes = [both, size, quality].filter(name => name !== undefined)
    return { tier: tier == null || tier === 'auto' ? undefined : tier, sizes }
  },
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

/** How often a model may search, as far as the caller says: at least once when it may at all. */
function searchesOf({ web_search, tools }: Readonly<ChatRequest>): number {
  const tool = tools?.find(tool => tool.type === 'web_search')
  if (!tool) return web_search === true ? 1 : 0
  return Math.max(1, Math.min(tool.max_uses ?? 1, MAX_SEARCHES))
}
const MAX_SEARCHES = 10

const embeddings: Operation<'embeddings'> = {
  servedBy: model => model.open === true || makesVectors(model),
  promptCharacters({ input }) {
    if (!Array.isArray(input)) return input.length
    let sum = 0
    for (const one of input) sum += charactersOf(one)
    return sum
  },
  tuning: { user: 'user' },
}

function makesVectors({ output }: Model): boolean {
  return output.includes('embedding')
}

function charactersOf(input: Exclude<EmbeddingRequest['input'], string>[number]): number {
  if (typeof input === 'string') return input.length
  return TOKEN_CHARACTERS * (typeof input === 'number' ? 1 : input.length)
}

const operations: { readonly [O in Op]: Operation<O> } = { chat, embeddings }

/** The operation that a model has. */
export const servedAs = (model: Model): Op => (embeddings.servedBy(model) ? 'embeddings' : 'chat')

export const operationOf = (op: Op): Operation => operations[op]
