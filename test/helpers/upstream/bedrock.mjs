/** The Converse wire: how an answer looks, whole and as a binary event stream. */
import { signatureOf } from './answer.mjs'
import { check } from './bedrock-rules.mjs'
import { message } from './event-stream.mjs'

const stopReasons = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'content_filtered',
}
const errorTypes = {
  400: 'ValidationException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  409: 'ConflictException',
  424: 'ModelErrorException',
  429: 'ThrottlingException',
  500: 'InternalServerException',
  503: 'ServiceUnavailableException',
}

/** This wire's `inputTokens` leave out what was read from and written to the cache. */
const usageOf = usage => ({
  inputTokens: usage.prompt - usage.cached - usage.written,
  outputTokens: usage.completion,
  totalTokens: usage.prompt + usage.completion,
  cacheReadInputTokens: usage.cached,
  cacheWriteInputTokens: usage.written,
  cacheDetails: [
    { ttl: '5m', inputTokens: usage.written - usage.written1h },
    { ttl: '1h', inputTokens: usage.written1h },
  ],
})

const stopOf = finish => stopReasons[finish] ?? finish
const toolId = (answer, index) => `tooluse_${answer.id}_${index}`
const textOf = content => (content ?? []).map(block => block.text ?? '').join('')
/** Only Claude signs what it thinks. */
const isSigned = model => model.includes('anthropic.')

/** Padding of no meaning, as the real one adds it. */
const event = (type, payload) =>
  message(
    { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' },
    { ...payload, p: 'abcdefgh' },
  )

/** @type {import('./server.mjs').Wire} */
export const bedrock = {
  name: 'bedrock',
  path: /(?:\/v1)?\/model\/(?<model>[^/]+)\/converse(?<stream>-stream)?$/,
  streamType: 'application/vnd.amazon.eventstream',
  check,

  read(body) {
    const texts = [body.system, ...body.messages.map(({ content }) => content)].map(textOf)
    const lastUser = body.messages.findLast(({ role }) => role === 'user')
    const results = lastUser.content.flatMap(({ toolResult }) => (toolResult ? [textOf(toolResult.content)] : []))
    return {
      model: body.model,
      n: 1,
      text: textOf(lastUser.content),
      characters: [...texts, ...results].reduce((sum, text) => sum + text.length, 0),
      tool: body.toolConfig?.tools.find(({ toolSpec }) => toolSpec)?.toolSpec.name ?? null,
      toolResult: results.at(-1) ?? null,
    }
  },

  claims: answer => answer.usage !== null,

  whole(answer, body) {
    const content = []
    if (answer.reasoning.length > 0) {
      const text = answer.reasoning.join('')
      const signature = isSigned(body.model) ? { signature: signatureOf(text) } : {}
      content.push({ reasoningContent: { reasoningText: { text, ...signature } } })
    }
    if (answer.text.length > 0) content.push({ text: answer.text.join('') })
    answer.toolCalls.forEach(({ name, pieces }, i) => {
      content.push({ toolUse: { toolUseId: toolId(answer, i), name, input: JSON.parse(pieces.join('') || '{}') } })
    })
    return {
      output: { message: { role: 'assistant', content } },
      stopReason: stopOf(answer.finish),
      ...(answer.usage && { usage: usageOf(answer.usage) }),
      metrics: { latencyMs: 1 },
      serviceTier: { type: body.serviceTier?.type ?? 'default' },
    }
  },

  frames(answer, body) {
    const frames = []
    const put = (type, payload, chunks = 0) => frames.push({ bytes: event(type, payload), chunks })
    let contentBlockIndex = 0
    const block = (deltas, closing = []) => {
      for (const delta of deltas) put('contentBlockDelta', { contentBlockIndex, delta }, 1)
      for (const delta of closing) put('contentBlockDelta', { contentBlockIndex, delta })
      put('contentBlockStop', { contentBlockIndex })
      contentBlockIndex++
    }
    put('messageStart', { role: 'assistant' })
    if (answer.reasoning.length > 0) {
      const signature = signatureOf(answer.reasoning.join(''))
      block(
        answer.reasoning.map(text => ({ reasoningContent: { text } })),
        isSigned(body.model) ? [{ reasoningContent: { signature } }] : [],
      )
    }
    if (answer.text.length > 0) block(answer.text.map(text => ({ text })))
    answer.toolCalls.forEach(({ name, pieces }, i) => {
      put('contentBlockStart', { contentBlockIndex, start: { toolUse: { toolUseId: toolId(answer, i), name } } })
      block(pieces.map(input => ({ toolUse: { input } })))
    })
    put('messageStop', { stopReason: stopOf(answer.finish) })
    put('metadata', {
      ...(answer.usage && { usage: usageOf(answer.usage) }),
      metrics: { latencyMs: 1 },
      serviceTier: { type: body.serviceTier?.type ?? 'default' },
    })
    return frames
  },

  error(status) {
    const type = errorTypes[status] ?? (status < 500 ? errorTypes[400] : errorTypes[500])
    return { __type: type, message: `Simulated failure ${status}.` }
  },

  errorEvent({ __type: type = errorTypes[500], ...payload }) {
    const exception = type[0].toLowerCase() + type.slice(1)
    return message(
      { ':exception-type': exception, ':content-type': 'application/json', ':message-type': 'exception' },
      payload,
    )
  },
}
