/** What planning, billing and counting must know of each operation, so that none of them asks which one it is. */
import type { Model } from './catalog.ts'
import type { EmbeddingRequest, Op, Ops } from './ops.ts'

export interface Operation<O extends Op = Op> {
  /** Whether a model has this operation, by what it puts out; its wires are no answer, a provider has them for all. */
  servedBy(model: Model): boolean
  /** Characters of a request that a model reads; media counts as nothing here. */
  promptCharacters(request: Readonly<Ops[O]>): number
  /**
   * Completion tokens that the answers may have: at most `ceiling` each, `usual` when the caller sets no bound. Absent
   * when answers count none.
   */
  answerTokens?(request: Readonly<Ops[O]>, usual: number, ceiling: number): number
  /** Fields that only tune an answer, with the parameter that a mapping must list to be sent them. */
  readonly tuning: Readonly<Partial<Record<keyof Ops[O], string>>>
}

const chat: Operation<'chat'> = {
  servedBy: model => !makesVectors(model),
  promptCharacters({ messages, tools }) {
    let sum = 0
    for (const { content, tool_calls: calls } of messages) {
      if (typeof content === 'string') sum += content.length
      else if (content) for (const part of content) sum += part.type === 'text' ? part.text.length : 0
      for (const call of calls ?? []) sum += call.function.name.length + call.function.arguments.length
    }
    return sum + (tools?.length ? JSON.stringify(tools).length : 0)
  },
  answerTokens: ({ max_tokens: bound, n }, usual, ceiling) => Math.min(bound ?? usual, ceiling) * (n ?? 1),
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

const embeddings: Operation<'embeddings'> = {
  servedBy: makesVectors,
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

/** As many as a token has on average (`estimateTokens`). */
const TOKEN_CHARACTERS = 4

function charactersOf(input: Exclude<EmbeddingRequest['input'], string>[number]): number {
  if (typeof input === 'string') return input.length
  return TOKEN_CHARACTERS * (typeof input === 'number' ? 1 : input.length)
}

const operations: { readonly [O in Op]: Operation<O> } = { chat, embeddings }

export const operationOf = (op: Op): Operation => operations[op]
