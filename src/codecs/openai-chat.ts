/** Client wire of `POST /v1/chat/completions`. Its request is the canonical form, so decoding is validation. */

import { type ChatBody, type ChatRequest, chatRequest } from '../core/chat-request.ts'
import type { Codec } from '../core/codec.ts'
import type { Exchange } from '../core/exchange.ts'
import { allowedTools, isAllowedTools } from './allowed-tools.ts'
import { checkCounts } from './chat-bounds.ts'
import { withMediaAside } from './chat-parts.ts'
import { chatPreset } from './chat-preset.ts'
import { checkChat } from './chat-rules.ts'
import { EVENT_STREAM } from './event-stream.ts'
import { messagesOfFunctions, toolsOfFunctions } from './functions.ts'
import { checkTexts } from './inner-json.ts'
import { asAnswered } from './joined.ts'
import { type ChatCompat, chatCompat, StreamEncoder, WholeEncoder } from './openai-chat-encoder.ts'
import { openAiError } from './overflow.ts'
import { passedParameters } from './passed-parameters.ts'
import { unsealed } from './unsealed.ts'
import { validator } from './validate.ts'

const validate = validator(chatRequest)
const known = new Set(Object.keys((chatRequest.json as { properties: object }).properties))

const codecFor = (compat: ChatCompat) =>
  ({
    wire: 'openai.chat',
    dropsReasoning: true,
    decode(body: unknown, ex?: Exchange): ChatRequest {
      const request = canonical(validate(body), ex?.caller.principal?.passesParameters)
      checkCounts(request, ex?.input.values ?? 0)
      checkTexts(request, ex?.input)
      return ex?.caller.policy ? unsealed(request, ex.caller.policy.seals.check()) : request
    },
    preset: chatPreset(validate.partial),
    encoder: (ex: Exchange) => (ex.streaming ? new StreamEncoder(ex, compat) : new WholeEncoder(ex, compat)),
    heartbeat: { contentType: EVENT_STREAM, text: ': waiting for the provider\n\n' },
    error: openAiError,
    requestSchema: validate.json,
    prepare: validate.prepare,
    compat: { options: chatCompat, create: (options: ChatCompat): Codec<'chat'> => codecFor(options) },
  }) satisfies Codec<'chat'>

/** Without `compat` in gateway.yaml, reasoning has both of its names. */
export const openAiChat = codecFor({ reasoning_content: true })

/** Fields accepted under another name, dependent on others, or ignored (`onboarding`). */
const special: ReadonlySet<string> = new Set([
  'messages',
  'max_tokens',
  'max_completion_tokens',
  'onboarding',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
  'stop',
  'seed',
  'logprobs',
  'top_logprobs',
  'logit_bias',
  'top_k',
])
const plain = new Set([...known].filter(key => !special.has(key)))

/**
 * The known fields that the caller set, one name each, checked against each other. `passes` adds parameters that the
 * interface does not list.
 */
export function canonical(body: ChatBody, passes = false): ChatRequest {
  const request: Record<string, unknown> = {}
  for (const key in body) {
    if (!plain.has(key)) continue
    const value = body[key as keyof ChatBody]
    if (value !== null) request[key] = value
  }
  const messages = body.messages.map(message => (message.role === 'assistant' ? asAnswered(message) : message))
  request.messages = messagesOfFunctions(messages)
  const limit = body.max_completion_tokens ?? body.max_tokens
  if (limit != null) request.max_tokens = limit
  Object.assign(request, toolsOf(body), passes ? passedParameters(body) : undefined)
  checkChat(request as ChatRequest)
  request.messages = withMediaAside((request as ChatRequest).messages)
  return request as ChatRequest
}

/** The tools and the choice among them, from either form. */
function toolsOf(body: ChatBody): Pick<ChatRequest, 'tools' | 'tool_choice' | 'parallel_tool_calls' | 'functions'> {
  const { tools, tool_choice: choice, parallel_tool_calls: parallel } = body
  if (isAllowedTools(choice)) return { ...allowedTools(tools ?? [], choice), ...parallelOf(parallel) }
  if (tools && tools.length > 0) {
    return choice == null ? { tools, ...parallelOf(parallel) } : { tools, tool_choice: choice, ...parallelOf(parallel) }
  }
  // Unlike other choices without tools, it requests something that would not happen.
  if (typeof choice === 'object' && choice?.type === 'web_search') return { tool_choice: choice }
  return toolsOfFunctions(body) ?? {}
}

const parallelOf = (given: unknown) => (typeof given === 'boolean' ? { parallel_tool_calls: given } : undefined)
