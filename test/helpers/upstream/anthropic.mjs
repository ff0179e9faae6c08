/** The Messages wire: how an answer looks, whole and streamed. */
import { signatureOf, textOf } from './answer.mjs'
import { check } from './anthropic-rules.mjs'

const stopReasons = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' }
const errorTypes = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  408: 'timeout_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

/** This wire's `input_tokens` leave out what was read from and written to the cache. */
const inputOf = usage => ({
  input_tokens: usage.prompt - usage.cached - usage.written,
  cache_creation_input_tokens: usage.written,
  cache_read_input_tokens: usage.cached,
  cache_creation: {
    ephemeral_5m_input_tokens: usage.written - usage.written1h,
    ephemeral_1h_input_tokens: usage.written1h,
  },
})
const outputOf = usage => ({
  output_tokens: usage.completion,
  output_tokens_details: { thinking_tokens: usage.reasoning },
})

/** Why it stopped, beside the reason: the words of a refusal. */
const detailsOf = ({ refusal }) =>
  refusal.length === 0 ? {} : { stop_details: { type: 'refusal', category: 'cyber', explanation: refusal.join('') } }
const stopOf = finish => stopReasons[finish] ?? finish
const event = payload => `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`
const toolId = (answer, index) => `toolu_${answer.id}_${index}`

/** @type {import('./server.mjs').Wire} */
export const anthropic = {
  name: 'anthropic',
  path: '/v1/messages',
  check,

  read(body) {
    const texts = [body.system, ...body.messages.map(message => message.content)].map(textOf)
    const lastUser = body.messages.findLast(message => message.role === 'user')
    const results = Array.isArray(lastUser?.content) ? lastUser.content.filter(b => b.type === 'tool_result') : []
    const resultTexts = results.map(result => textOf(result.content))
    return {
      model: body.model,
      n: 1,
      text: textOf(lastUser?.content),
      characters: [...texts, ...resultTexts].reduce((sum, text) => sum + text.length, 0),
      tool: body.tools?.find(tool => tool.input_schema)?.name ?? null,
      toolResult: resultTexts.at(-1) ?? null,
    }
  },

  claims: answer => answer.usage !== null,

  whole(answer) {
    const content = []
    if (answer.reasoning.length > 0) {
      const thinking = answer.reasoning.join('')
      content.push({ type: 'thinking', thinking, signature: signatureOf(thinking) })
    }
    if (answer.text.length > 0) content.push({ type: 'text', text: answer.text.join(''), citations: null })
    answer.toolCalls.forEach(({ name, pieces }, i) => {
      content.push({ type: 'tool_use', id: toolId(answer, i), name, input: JSON.parse(pieces.join('') || '{}') })
    })
    return {
      id: `msg_${answer.id}`,
      type: 'message',
      role: 'assistant',
      model: answer.model,
      content,
      stop_reason: stopOf(answer.finish),
      stop_sequence: null,
      ...detailsOf(answer),
      ...(answer.usage && {
        usage: { ...inputOf(answer.usage), ...outputOf(answer.usage), service_tier: 'standard' },
      }),
    }
  },

  frames(answer) {
    const frames = []
    const put = (payload, chunks = 0) => frames.push({ bytes: event(payload), chunks })
    let index = 0
    const block = (content_block, deltas, closing = []) => {
      put({ type: 'content_block_start', index, content_block })
      if (index === 0) put({ type: 'ping' })
      for (const delta of deltas) put({ type: 'content_block_delta', index, delta }, 1)
      for (const delta of closing) put({ type: 'content_block_delta', index, delta })
      put({ type: 'content_block_stop', index })
      index++
    }
    const usage = answer.usage
    put({
      type: 'message_start',
      message: {
        id: `msg_${answer.id}`,
        type: 'message',
        role: 'assistant',
        model: answer.model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        ...(usage && { usage: { ...inputOf(usage), output_tokens: 1, service_tier: 'standard' } }),
      },
    })
    if (answer.reasoning.length > 0) {
      block(
        { type: 'thinking', thinking: '', signature: '' },
        answer.reasoning.map(thinking => ({ type: 'thinking_delta', thinking })),
        [{ type: 'signature_delta', signature: signatureOf(answer.reasoning.join('')) }],
      )
    }
    if (answer.text.length > 0) {
      block(
        { type: 'text', text: '' },
        answer.text.map(text => ({ type: 'text_delta', text })),
      )
    }
    answer.toolCalls.forEach(({ name, pieces }, i) => {
      block(
        { type: 'tool_use', id: toolId(answer, i), name, input: {} },
        pieces.map(partial_json => ({ type: 'input_json_delta', partial_json })),
      )
    })
    put({
      type: 'message_delta',
      delta: { stop_reason: stopOf(answer.finish), stop_sequence: null, ...detailsOf(answer) },
      ...(usage && { usage: { ...inputOf(usage), ...outputOf(usage) } }),
    })
    put({ type: 'message_stop' })
    return frames
  },

  error(status) {
    const type = errorTypes[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
    return { type: 'error', error: { type, message: `Simulated failure ${status}.` }, request_id: 'req_simulated' }
  },

  errorEvent: event,
}
