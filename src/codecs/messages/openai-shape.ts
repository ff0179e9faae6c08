/** Recognizes bodies of the chat completions format at this endpoint (docs/contract.md#messages). */

import { isObject, type Json } from '../../json/json.ts'
import { errors } from '../../lib/error.ts'

/** Top-level fields of that format that this one lacks. */
const FIELDS = [
  'audio',
  'frequency_penalty',
  'function_call',
  'functions',
  'logit_bias',
  'logprobs',
  'max_completion_tokens',
  'modalities',
  'n',
  'parallel_tool_calls',
  'prediction',
  'presence_penalty',
  'prompt',
  'response_format',
  'seed',
  'stop',
  'store',
  'stream_options',
  'top_logprobs',
  'web_search_options',
]
const PARTS = new Set(['file', 'image_url', 'input_audio', 'input_image', 'input_text', 'output_text', 'refusal'])

/** Throws a 400 that names the first field of the other format, and the endpoint for it. */
export function refuseOpenAiShape(body: unknown): void {
  if (!isObject(body)) return
  const path = foreignField(body)
  if (path === undefined) return
  throw errors.invalidParameters(
    `Invalid request format: "${path}" belongs to the OpenAI chat completions format, and this endpoint takes the ` +
      'Anthropic Messages format. Send this body to /v1/chat/completions, or write it as a Messages request.',
    path,
  )
}

function foreignField(body: Json): string | undefined {
  const field = FIELDS.find(name => Object.hasOwn(body, name))
  if (field !== undefined) return field
  const { tools, tool_choice: choice, messages } = body
  if (Array.isArray(tools)) {
    const index = tools.findIndex(tool => isObject(tool) && Object.hasOwn(tool, 'function'))
    if (index >= 0) return `tools[${index}].function`
  }
  if (typeof choice === 'string') return 'tool_choice'
  if (isObject(choice) && Object.hasOwn(choice, 'function')) return 'tool_choice.function'
  if (!Array.isArray(messages)) return undefined
  for (const [i, message] of messages.entries()) {
    if (!isObject(message)) continue
    if (message.content === null) return `messages[${i}].content`
    if (!Array.isArray(message.content)) continue
    const j = message.content.findIndex(part => isObject(part) && PARTS.has(part.type as string))
    if (j >= 0) return `messages[${i}].content[${j}].type`
  }
  return undefined
}
