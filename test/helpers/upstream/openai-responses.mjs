/** The Responses wire: how an answer looks, whole and streamed. */
import { signatureOf, textOf } from './answer.mjs'
import { check } from './openai-responses-rules.mjs'

const created = 1790000000

const usageOf = usage => ({
  input_tokens: usage.prompt,
  input_tokens_details: { cached_tokens: usage.cached, cache_write_tokens: usage.written },
  output_tokens: usage.completion,
  output_tokens_details: { reasoning_tokens: usage.reasoning },
  total_tokens: usage.prompt + usage.completion,
})

const tierOf = body => (body.service_tier == null || body.service_tier === 'auto' ? 'default' : body.service_tier)

const faults = {
  400: ['invalid_request_error', null],
  401: ['invalid_request_error', 'invalid_api_key'],
  403: ['invalid_request_error', 'unsupported_country_region_territory'],
  404: ['invalid_request_error', 'model_not_found'],
  429: ['requests', 'rate_limit_exceeded'],
}

const event = payload => `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`

/** Input parts have types of their own. */
const words = content =>
  textOf(
    typeof content === 'string'
      ? content
      : (content ?? []).map(part => ({ type: /^(?:in|out)put_text$/.test(part.type) ? 'text' : '', text: part.text })),
  )
const wordsOf = item => words(item.content ?? item.output)

/** The items of an answer as they are in the end. Reasoning is encrypted for those who ask. */
function itemsOf(answer, body) {
  const items = []
  if (answer.reasoning.length > 0) {
    const text = answer.reasoning.join('')
    const encrypted = body.include?.includes('reasoning.encrypted_content') ? signatureOf(text) : null
    const summary = [{ type: 'summary_text', text }]
    items.push({ id: `rs_${answer.id}`, type: 'reasoning', summary, content: [], encrypted_content: encrypted })
  }
  if (answer.text.length + answer.refusal.length > 0) {
    const text = { type: 'output_text', text: answer.text.join(''), annotations: [], logprobs: [] }
    const content = [answer.refusal.length === 0 ? text : { type: 'refusal', refusal: answer.refusal.join('') }]
    items.push({ id: `msg_${answer.id}`, type: 'message', status: 'completed', role: 'assistant', content })
  }
  answer.toolCalls.forEach(({ name, custom, pieces }, i) => {
    if (custom) {
      const call = { call_id: `call_${answer.id}_${i}`, name, input: pieces.join('') }
      items.push({ id: `ctc_${answer.id}_${i}`, type: 'custom_tool_call', status: 'completed', ...call })
      return
    }
    if (
      name === 'tool_search' &&
      body.tools?.some(tool => tool.type === 'tool_search' && tool.execution === 'client')
    ) {
      const call = { call_id: `call_${answer.id}_${i}`, execution: 'client', arguments: JSON.parse(pieces.join('')) }
      items.push({ id: `tsc_${answer.id}_${i}`, type: 'tool_search_call', status: 'completed', ...call })
      return
    }
    const call = { call_id: `call_${answer.id}_${i}`, name, arguments: pieces.join('') }
    items.push({ id: `fc_${answer.id}_${i}`, type: 'function_call', status: 'completed', ...call })
  })
  return items
}

const endings = {
  length: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
  content_filter: { status: 'incomplete', incomplete_details: { reason: 'content_filter' } },
}

function response(answer, body, rest) {
  return {
    id: `resp_${answer.id}`,
    object: 'response',
    created_at: created,
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    model: answer.model,
    output: [],
    store: body.store ?? true,
    service_tier: 'auto',
    usage: null,
    ...rest,
  }
}

const ended = (answer, body) =>
  response(answer, body, {
    status: 'completed',
    ...endings[answer.finish],
    output: itemsOf(answer, body),
    service_tier: tierOf(body),
    ...(answer.usage && { usage: usageOf(answer.usage) }),
  })

/** What of an item streams: how it looks before, its pieces, and what closes it but for the item itself. */
function growth(item, index, answer) {
  const at = { item_id: item.id, output_index: index }
  const [id, type] = [item.id, item.type]
  switch (type) {
    case 'reasoning': {
      const [part] = item.summary
      const here = { ...at, summary_index: 0 }
      const name = 'response.reasoning_summary'
      return {
        empty: { id, type, summary: [], content: [], encrypted_content: null },
        opening: [{ type: `${name}_part.added`, ...here, part: { ...part, text: '' } }],
        pieces: answer.reasoning.map(delta => ({ type: `${name}_text.delta`, ...here, delta })),
        closing: [
          { type: `${name}_text.done`, ...here, text: part.text },
          { type: `${name}_part.done`, ...here, part },
        ],
      }
    }
    case 'message': {
      const [part] = item.content
      const here = { ...at, content_index: 0 }
      const added = { type: 'response.content_part.added', ...here }
      const done = { type: 'response.content_part.done', ...here, part }
      const started = { ...item, status: 'in_progress', content: [] }
      if (part.type === 'refusal') {
        const { refusal } = part
        return {
          empty: started,
          opening: [{ ...added, part: { ...part, refusal: '' } }],
          pieces: answer.refusal.map(delta => ({ type: 'response.refusal.delta', ...here, delta })),
          closing: [{ type: 'response.refusal.done', ...here, refusal }, done],
        }
      }
      return {
        empty: started,
        opening: [{ ...added, part: { ...part, text: '' } }],
        pieces: answer.text.map(delta => ({ type: 'response.output_text.delta', ...here, delta, logprobs: [] })),
        closing: [{ type: 'response.output_text.done', ...here, text: part.text, logprobs: [] }, done],
      }
    }
    default: {
      if (type === 'tool_search_call')
        return { empty: { ...item, arguments: {} }, opening: [], pieces: [], closing: [] }
      const { pieces } = answer.toolCalls[Number(id.split('_').at(-1))]
      const [name, field] =
        type === 'custom_tool_call'
          ? ['response.custom_tool_call_input', 'input']
          : ['response.function_call_arguments', 'arguments']
      return {
        empty: { ...item, status: 'in_progress', [field]: '' },
        opening: [],
        pieces: pieces.map(delta => ({ type: `${name}.delta`, ...at, delta })),
        closing: [{ type: `${name}.done`, ...at, [field]: item[field] }],
      }
    }
  }
}

/** @type {import('./server.mjs').Wire} */
export const openaiResponses = {
  name: 'openai-responses',
  path: '/v1/responses',
  check,

  read(body) {
    const items = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : body.input
    const last = items.at(-1)
    return {
      model: body.model,
      n: 1,
      text: words(items.findLast(item => item.role === 'user')?.content),
      characters: items.reduce((sum, item) => sum + wordsOf(item).length, 0),
      tool: body.tools?.find(tool => tool.type === 'function')?.name ?? null,
      toolResult: /^(?:function|custom_tool)_call_output$/.test(last.type) ? wordsOf(last) : null,
    }
  },

  claims: answer => answer.usage !== null,

  whole: ended,

  frames(answer, body) {
    const frames = []
    const put = (payload, chunks = 0) => {
      const { type, ...fields } = payload
      frames.push({ bytes: event({ type, sequence_number: frames.length, ...fields }), chunks })
    }
    put({ type: 'response.created', response: response(answer, body) })
    put({ type: 'response.in_progress', response: response(answer, body) })
    const end = ended(answer, body)
    end.output.forEach((item, output_index) => {
      const { empty, opening, pieces, closing } = growth(item, output_index, answer)
      put({ type: 'response.output_item.added', output_index, item: empty })
      for (const payload of opening) put(payload)
      for (const payload of pieces) put(payload, 1)
      for (const payload of closing) put(payload)
      put({ type: 'response.output_item.done', output_index, item })
    })
    put({ type: `response.${end.status}`, response: end })
    return frames
  },

  error(status) {
    const [type, code] = faults[status] ?? (status < 500 ? faults[400] : ['server_error', 'server_error'])
    return { error: { message: `Simulated failure ${status}.`, type, param: null, code } }
  },

  /** Flat or nested, as it is given; the failed response comes after it, as it really does. */
  errorEvent(payload) {
    const { code = null, message = 'Simulated failure.' } = payload.error ?? payload
    const failed = { id: 'resp_failed', object: 'response', status: 'failed', output: [], error: { code, message } }
    return event({ ...payload, type: 'error' }) + event({ type: 'response.failed', response: failed })
  },
}
