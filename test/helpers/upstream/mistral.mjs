/** Mistral's dialect of chat completions: how an answer looks, whole and streamed. */
import { signatureOf, textOf } from './answer.mjs'
import { check } from './mistral-rules.mjs'

const created = 1790000000

const usageOf = usage => ({
  prompt_tokens: usage.prompt,
  completion_tokens: usage.completion,
  total_tokens: usage.prompt + usage.completion,
  num_cached_tokens: usage.cached,
  prompt_token_details: { cached_tokens: usage.cached },
  service_tier: 'standard',
})

/** Nine letters and digits. */
const callId = (answer, choice, index) =>
  [answer.id, choice, index].map((part, i) => part.toString(36).padStart([5, 2, 2][i], '0')).join('')

const thinking = (text, signature) => ({
  type: 'thinking',
  thinking: text === '' ? [] : [{ type: 'text', text }],
  ...(signature && { signature }),
})
/** This wire has no word for a refusal. */
const finishOf = finish => (finish === 'content_filter' ? 'stop' : finish)
const event = payload => `data: ${JSON.stringify(payload)}\n\n`

const faults = {
  400: ['invalid_request_error', '3051'],
  404: ['invalid_model', '1500'],
  429: ['rate_limited', '1300'],
}

/** @type {import('./server.mjs').Wire} */
export const mistral = {
  name: 'mistral',
  path: '/v1m/chat/completions',
  check,

  read(body) {
    const last = body.messages.at(-1)
    return {
      model: body.model,
      n: body.n ?? 1,
      text: textOf(body.messages.findLast(message => message.role === 'user')?.content),
      characters: body.messages.reduce((sum, message) => sum + textOf(message.content).length, 0),
      tool: body.tools?.[0].function.name ?? null,
      toolResult: last.role === 'tool' ? textOf(last.content) : null,
    }
  },

  claims: (answer, body) => answer.usage !== null && (!body.stream || answer.finish !== null),

  whole(answer) {
    const text = answer.text.join('')
    const reasoning = answer.reasoning.join('')
    const message = choice => ({
      role: 'assistant',
      content: reasoning === '' ? text : [thinking(reasoning, signatureOf(reasoning)), { type: 'text', text }],
      tool_calls:
        answer.toolCalls.length === 0
          ? null
          : answer.toolCalls.map(({ name, pieces }, index) => ({
              id: callId(answer, choice, index),
              function: { name, arguments: pieces.join('') },
            })),
    })
    return {
      id: `mistral${answer.id}`,
      object: 'chat.completion',
      created,
      model: answer.model,
      choices: Array.from({ length: answer.n }, (_, index) => ({
        index,
        message: message(index),
        finish_reason: finishOf(answer.finish),
      })),
      ...(answer.usage && { usage: usageOf(answer.usage) }),
    }
  },

  /** Tool calls come whole, without index and type, in the chunk that ends the choice; usage in the last of these. */
  frames(answer) {
    const { n, toolCalls } = answer
    const each = (chunks, deltaOf, finish_reason = null) =>
      Array.from({ length: n }, (_, index) => ({
        bytes: event({
          id: `mistral${answer.id}`,
          object: 'chat.completion.chunk',
          created,
          model: answer.model,
          choices: [{ index, delta: deltaOf(index), finish_reason }],
          ...(finish_reason && index === n - 1 && answer.usage && { usage: usageOf(answer.usage) }),
        }),
        chunks,
      }))
    const reasoning = answer.reasoning.join('')
    const calls = choice =>
      toolCalls.map(({ name, pieces }, index) => ({
        id: callId(answer, choice, index),
        function: { name, arguments: pieces.join('') },
      }))
    const called = toolCalls.reduce((sum, { pieces }) => sum + pieces.length, 0)
    const last = choice => (toolCalls.length > 0 ? { content: '', tool_calls: calls(choice) } : { content: '' })
    return [
      ...each(0, () => ({ role: 'assistant', content: '' })),
      ...answer.reasoning.flatMap(text => each(1, () => ({ content: [thinking(text)] }))),
      ...(reasoning === '' ? [] : each(0, () => ({ content: [thinking('', signatureOf(reasoning))] }))),
      ...answer.text.flatMap(text => each(1, () => ({ content: text }))),
      ...each(called, last, finishOf(answer.finish)),
      { bytes: 'data: [DONE]\n\n', chunks: 0 },
    ]
  },

  error(status) {
    if (status === 401) return { detail: 'Unauthorized' }
    const [type, code] = faults[status] ?? [status < 500 ? 'invalid_request_error' : 'internal_server_error', null]
    return { object: 'error', message: `Simulated failure ${status}.`, type, param: null, code }
  },

  errorEvent: event,
}
