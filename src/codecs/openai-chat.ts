/** Client wire of `POST /v1/chat/completions`. Its request is the canonical form, so decoding is validation. */
import type { Codec } from '../core/codec.ts'
import { type ChatRequest, chatRequest } from '../core/ops.ts'
import { checkChat } from './chat-rules.ts'
import { StreamEncoder, WholeEncoder } from './openai-chat-encoder.ts'
import { openAiError } from './openai-error.ts'
import { validator } from './validate.ts'

const validate = validator(chatRequest)
const known = new Set(Object.keys((chatRequest.json as { properties: object }).properties))

export const openAiChat = {
  wire: 'openai.chat',
  decode: body => canonical(validate(body)),
  encoder: ex => (ex.streaming ? new StreamEncoder(ex) : new WholeEncoder(ex)),
  error: openAiError,
  prepare: validate.prepare,
} satisfies Codec<'chat'>

/** The fields that the interface knows and the caller set; one name for each; checked against each other. */
export function canonical(body: ChatRequest): ChatRequest {
  const request: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(body)) if (value !== null && known.has(key)) request[key] = value
  if (request.max_completion_tokens !== undefined) request.max_tokens = request.max_completion_tokens
  delete request.max_completion_tokens
  delete request.onboarding
  if (body.tools?.length === 0) delete request.tools
  if (request.tools === undefined) {
    delete request.tool_choice
    delete request.parallel_tool_calls
  }
  checkChat(request as ChatRequest)
  return request as ChatRequest
}
