/** The chat completions wire: how an answer looks, whole and streamed. */
import { textOf } from './answer.mjs'
import { check } from './openai-rules.mjs'

const created = 1790000000

const usageOf = usage => ({
  prompt_tokens: usage.prompt,
  completion_tokens: usage.completion,
  total_tokens: usage.prompt + usage.completion,
  prompt_tokens_details: { cached_tokens: usage.cached, cache_write_tokens: usage.written, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: usage.reasoning,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
})

const callId = (answer, choice, index) => `call_${answer.id}_${choice}_${index}`
const tierOf = body => (body.service_tier == null || body.service_tier === 'auto' ? 'default' : body.service_tier)
const event = payload => `data: ${JSON.stringify(payload)}\n\n`

const faults = {
  400: ['invalid_request_error', null],
  401: ['invalid_request_error', 'invalid_api_key'],
  403: ['invalid_request_error', 'unsupported_country_region_territory'],
  404: ['invalid_request_error', 'model_not_found'],
  429: ['requests', 'rate_limit_exceeded'],
}

/** @type {import('./server.mjs').Wire} */
export const openai = {
  name: 'openai',
  path: '/v1/chat/completions',
  check,

  read(body) {
    const last = body.messages.at(-1)
    return {
      model: body.model,
      n: body.n ?? 1,
      text: textOf(body.messages.findLast(message => message.role === 'user')?.content),
      characters: body.messages.reduce((sum, message) => sum + textOf(message.content).length, 0),
      tool: body.tools?.find(tool => tool.type === 'function')?.function.name ?? null,
      toolResult: last.role === 'tool' ? textOf(last.content) : null,
    }
  },

  claims: (answer, body) => answer.usage !== null && (!body.stream || body.stream_options?.include_usage === true),

  whole(answer, body) {
    const message = choice => ({
      role: 'assistant',
      content: answer.text.length > 0 ? answer.text.join('') : null,
      refusal: answer.refusal.join('') || null,
      annotations: [],
      ...(answer.reasoning.length > 0 && { reasoning_content: answer.reasoning.join('') }),
      ...(answer.toolCalls.length > 0 && {
        tool_calls: answer.toolCalls.map(({ name, custom, pieces }, index) => ({
          id: callId(answer, choice, index),
          ...(custom
            ? { type: 'custom', custom: { name, input: pieces.join('') } }
            : { type: 'function', function: { name, arguments: pieces.join('') } }),
        })),
      }),
    })
    return {
      id: `chatcmpl-${answer.id}`,
      object: 'chat.completion',
      created,
      model: answer.model,
      choices: Array.from({ length: answer.n }, (_, index) => ({
        index,
        message: message(index),
        logprobs: null,
        finish_reason: answer.finish,
      })),
      ...(answer.usage && { usage: usageOf(answer.usage) }),
      service_tier: tierOf(body),
      system_fingerprint: 'fp_test',
    }
  },

  frames(answer, body) {
    const told = body.stream_options?.include_usage === true
    const chunk = (choices, usage = null) =>
      event({
        id: `chatcmpl-${answer.id}`,
        object: 'chat.completion.chunk',
        created,
        model: answer.model,
        service_tier: tierOf(body),
        system_fingerprint: 'fp_test',
        choices,
        ...(told && { usage }),
      })
    const indexes = Array.from({ length: answer.n }, (_, index) => index)
    /** One frame for every choice, so that choices interleave. */
    const each = (chunks, deltaOf, finish_reason = null) =>
      indexes.map(index => ({
        bytes: chunk([{ index, delta: deltaOf(index), logprobs: null, finish_reason }]),
        chunks,
      }))
    const first = answer.toolCalls.length > 0 && answer.text.length === 0 ? null : ''
    return [
      ...each(0, () => ({ role: 'assistant', content: first, refusal: null })),
      ...answer.reasoning.flatMap(text => each(1, () => ({ reasoning_content: text }))),
      ...answer.text.flatMap(text => each(1, () => ({ content: text }))),
      ...answer.refusal.flatMap(refusal => each(1, () => ({ refusal }))),
      ...answer.toolCalls.flatMap(({ name, custom, pieces }, index) => {
        const begun = custom
          ? { type: 'custom', custom: { name, input: '' } }
          : { type: 'function', function: { name, arguments: '' } }
        const grown = piece => (custom ? { custom: { input: piece } } : { function: { arguments: piece } })
        return [
          ...each(0, choice => ({ tool_calls: [{ index, id: callId(answer, choice, index), ...begun }] })),
          ...pieces.flatMap(piece => each(1, () => ({ tool_calls: [{ index, ...grown(piece) }] }))),
        ]
      }),
      ...each(0, () => ({}), answer.finish),
      ...(told && answer.usage ? [{ bytes: chunk([], usageOf(answer.usage)), chunks: 0 }] : []),
      { bytes: 'data: [DONE]\n\n', chunks: 0 },
    ]
  },

  error(status) {
    const [type, code] = faults[status] ?? (status < 500 ? faults[400] : ['server_error', null])
    return { error: { message: `Simulated failure ${status}.`, type, param: null, code } }
  },

  errorEvent: event,
}
