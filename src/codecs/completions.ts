/** Client wire of `POST /v1/completions`: prompts as chats of one message each. */

import type { ChatRequest } from '../core/chat-request.ts'
import type { Codec } from '../core/codec.ts'
import { type Infer, type Schema, s } from '../core/schema.ts'
import { MAX_TEXT_CHARACTERS } from '../json/answer-bounds.ts'
import { errors } from '../lib/error.ts'
import { StreamEncoder, WholeEncoder } from './completions-encoder.ts'
import { EVENT_STREAM } from './event-stream.ts'
import { openAiError } from './overflow.ts'
import { passedParameters } from './passed-parameters.ts'
import { validator } from './validate.ts'

const DEFAULT_TOKENS = 16
/** Each prompt is a call of a provider. */
const MAX_PROMPTS = 20

const number = s.maybe(s.number())
const unlisted = s.optional(s.unknown())
/** `promptsOf` checks the contents of lists, with better messages than a schema. */
const prompt: Schema<string | unknown[]> = { json: { type: ['string', 'array'] } }

const request = s.open({
  model: s.string({ minLength: 1, maxLength: 256 }),
  prompt,
  max_tokens: s.maybe(s.integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  temperature: number,
  top_p: number,
  frequency_penalty: number,
  presence_penalty: number,
  n: s.maybe(s.integer({ minimum: 1, maximum: 128 })),
  stream: s.maybe(s.boolean()),
  echo: s.maybe(s.boolean()),
  user: s.maybe(s.string()),
  stop: unlisted,
  seed: unlisted,
  logit_bias: unlisted,
  suffix: unlisted,
  best_of: unlisted,
  logprobs: unlisted,
})
type CompletionBody = Infer<typeof request>
const validate = validator(request)

/** Parameters that chat models do not support. */
const REFUSED = ['suffix', 'best_of', 'logprobs'] as const

/** Shows no reasoning. Refuses parameters that chat models do not support with 400. */
export const completions = {
  wire: 'openai.completions',
  decode(body, ex) {
    ex.answer.showsReasoning = false
    return canonical(validate(body))
  },
  encoder: ex => (ex.streaming ? new StreamEncoder(ex) : new WholeEncoder(ex)),
  heartbeat: { contentType: EVENT_STREAM, text: ': waiting for the provider\n\n' },
  error: openAiError,
  requestSchema: validate.json,
  prepare: validate.prepare,
} satisfies Codec<'chat'>

function canonical(body: CompletionBody): ChatRequest {
  const refused = REFUSED.find(name => body[name] != null)
  if (refused) throw errors.unsupported(`${refused}: chat models cannot do that; leave it out.`, refused)
  const prompts = promptsOf(body.prompt)
  if (body.echo) checkEcho(prompts, body.n ?? 1)
  const chat: ChatRequest = {
    model: body.model,
    messages: prompts.map(content => ({ role: 'user', content })),
    max_tokens: body.max_tokens ?? DEFAULT_TOKENS,
    ...passedParameters(body),
  }
  for (const name of [
    'temperature',
    'top_p',
    'frequency_penalty',
    'presence_penalty',
    'n',
    'stream',
    'user',
  ] as const) {
    if (body[name] != null) Object.assign(chat, { [name]: body[name] })
  }
  if (body.echo) chat.echo = true
  if (prompts.length > 1) chat.prompts = true
  return chat
}

function promptsOf(prompt: CompletionBody['prompt']): string[] {
  const prompts = typeof prompt === 'string' ? [prompt] : prompt
  if (prompts.length === 0) throw errors.invalidField('prompt', 'must not be empty')
  if (prompts.length > MAX_PROMPTS)
    throw errors.invalidField('prompt', `must hold at most ${MAX_PROMPTS} texts, got ${prompts.length}`)
  return prompts.map((text, index) => {
    const at = typeof prompt === 'string' ? 'prompt' : `prompt[${index}]`
    if (typeof text !== 'string') throw errors.invalidField('prompt', 'must be text: chat models take no token ids')
    if (text === '') throw errors.invalidField(at, 'must not be empty')
    return text
  })
}

/** Each choice repeats its prompt. */
function checkEcho(prompts: readonly string[], n: number): void {
  const repeated = n * prompts.reduce((sum, text) => sum + text.length, 0)
  if (repeated <= MAX_TEXT_CHARACTERS) return
  const most = MAX_TEXT_CHARACTERS.toLocaleString('en')
  throw errors.invalidField(
    'echo',
    `the prompts of all choices must have at most ${most} characters, got ${repeated.toLocaleString('en')}`,
  )
}
