/** Cohere's chat wire: how an answer looks, whole and streamed. */
import { textOf } from './answer.mjs'
import { check } from './cohere-rules.mjs'

const finishReasons = { stop: 'COMPLETE', length: 'MAX_TOKENS', tool_calls: 'TOOL_CALL', content_filter: 'ERROR_TOXIC' }

/** Of a model without instructions of the provider's own, which would be counted but not billed. */
const usageOf = usage => ({
  billed_units: { input_tokens: usage.prompt, output_tokens: usage.completion },
  tokens: { input_tokens: usage.prompt, output_tokens: usage.completion },
  cached_tokens: usage.cached,
})
const finishOf = finish => finishReasons[finish] ?? finish
const event = payload => `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`
const callId = (answer, { name }, index) => `${name}_${answer.id}x${index}`

/** @type {import('./server.mjs').Wire} */
export const cohere = {
  name: 'cohere',
  path: '/v2/chat',
  check,

  read(body) {
    const last = body.messages.at(-1)
    const texts = body.messages.map(message => textOf(message.content) + (message.tool_plan ?? ''))
    return {
      model: body.model,
      n: 1,
      text: textOf(body.messages.findLast(message => message.role === 'user')?.content),
      characters: texts.reduce((sum, text) => sum + text.length, 0),
      tool: body.tools?.[0].function.name ?? null,
      toolResult: last.role === 'tool' ? textOf(last.content) : null,
    }
  },

  claims: answer => answer.usage !== null,

  whole(answer) {
    const text = answer.text.join('')
    const thinking = answer.reasoning.join('')
    const calls = answer.toolCalls.map((call, index) => ({
      id: callId(answer, call, index),
      type: 'function',
      function: { name: call.name, arguments: call.pieces.join('') || 'null' },
    }))
    const content = [
      ...(thinking === '' ? [] : [{ type: 'thinking', thinking }]),
      ...(text === '' || calls.length > 0 ? [] : [{ type: 'text', text }]),
    ]
    return {
      id: `cohere-${answer.id}`,
      finish_reason: finishOf(answer.finish),
      message: {
        role: 'assistant',
        ...(content.length > 0 && { content }),
        ...(calls.length > 0 && { ...(text !== '' && { tool_plan: text }), tool_calls: calls }),
      },
      ...(answer.usage && { usage: usageOf(answer.usage) }),
    }
  },

  /** The answer's text is the plan where it calls tools. */
  frames(answer) {
    const frames = []
    const put = (type, more, chunks = 0) => frames.push({ bytes: event({ type, ...more }), chunks })
    const delta = message => ({ delta: { message } })
    const empty = { role: 'assistant', content: [], tool_plan: '', tool_calls: [], citations: [] }
    let index = 0
    const block = (type, pieces) => {
      if (pieces.length === 0) return
      put('content-start', { index, ...delta({ content: { type, [type]: '' } }) })
      for (const piece of pieces) put('content-delta', { index, ...delta({ content: { [type]: piece } }) }, 1)
      put('content-end', { index })
      index++
    }
    put('message-start', { id: `cohere-${answer.id}`, ...delta(empty) })
    block('thinking', answer.reasoning)
    if (answer.toolCalls.length === 0) block('text', answer.text)
    else for (const tool_plan of answer.text) put('tool-plan-delta', delta({ tool_plan }), 1)
    answer.toolCalls.forEach((call, at) => {
      const id = callId(answer, call, at)
      const start = { id, type: 'function', function: { name: call.name, arguments: '' } }
      put('tool-call-start', { index: at, ...delta({ tool_calls: start }) })
      for (const piece of call.pieces) {
        put('tool-call-delta', { index: at, ...delta({ tool_calls: { function: { arguments: piece } } }) }, 1)
      }
      put('tool-call-end', { index: at })
    })
    const usage = answer.usage && { usage: usageOf(answer.usage) }
    put('message-end', { delta: { finish_reason: finishOf(answer.finish), ...usage } })
    return frames
  },

  error: status => ({ message: `Simulated failure ${status}.`, id: 'simulated' }),

  /** Inside a stream an error is the way it ends. */
  errorEvent: ({ message }) => event({ type: 'message-end', delta: { finish_reason: 'ERROR', error: message } }),
}
