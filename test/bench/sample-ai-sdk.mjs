/** The same chat request as the AI SDK sends it, and its stream of parts. */
import { request as chatRequest, check } from './sample.mjs'

/** What says that the body is for this model, and its answer a stream. */
export const headers = {
  'ai-language-model-id': 'bench',
  'ai-language-model-specification-version': '4',
  'ai-language-model-streaming': 'true',
}

/** Call options as JSON text. */
export function request(asked) {
  const { messages, temperature, top_p: topP, max_tokens: maxOutputTokens, seed } = JSON.parse(chatRequest(asked))
  const prompt = messages.map(({ role, content }) => ({
    role,
    content: role === 'system' ? content : [{ type: 'text', text: content }],
  }))
  return JSON.stringify({ prompt, temperature, topP, maxOutputTokens, seed, includeRawChunks: false })
}

/** Throws unless a stream of parts says everything that the provider said, and ends with its finish. */
export function checkParts(body) {
  const parts = body
    .split('\n\n')
    .filter(event => event.startsWith('data: {'))
    .map(event => JSON.parse(event.slice('data: '.length)))
  const content = parts.map(({ delta = '' }) => delta).join('')
  const { finishReason, usage } = parts.at(-1)
  const { total: prompt_tokens } = usage.inputTokens
  const { total: completion_tokens } = usage.outputTokens
  check(content, finishReason.unified, { prompt_tokens, completion_tokens })
}
