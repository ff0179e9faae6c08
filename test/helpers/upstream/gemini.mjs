/** The generateContent wire on both of its surfaces: how an answer looks, whole and streamed. */
import { signatureOf } from './answer.mjs'
import { callText, check, isSigning } from './gemini-rules.mjs'

const finishReasons = { stop: 'STOP', tool_calls: 'STOP', length: 'MAX_TOKENS', content_filter: 'SAFETY' }
const words = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}
const path =
  /\/v1(?:beta\d?)?(?:\/projects\/[^/]+\/locations\/[^/]+)?(?:\/publishers\/google)?\/models\/(?<model>[^/:]+):(?:(?<stream>streamGenerateContent)|generateContent)$/

const textsOf = parts => (parts ?? []).flatMap(part => (part.text === undefined ? [] : [part.text]))
const resultOf = ({ response }) => (typeof response.output === 'string' ? response.output : JSON.stringify(response))
const event = payload => `data: ${JSON.stringify(payload)}\r\n\r\n`

/** Counts up to a point of the answer; thoughts and the rest of the completion are told apart. */
function usageMetadata({ prompt, cached, completion, reasoning }, share = 1) {
  const thoughts = Math.ceil(reasoning * share)
  const candidates = Math.ceil((completion - reasoning) * share)
  return {
    promptTokenCount: prompt,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    ...(candidates > 0 && { candidatesTokenCount: candidates }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    totalTokenCount: prompt + candidates + thoughts,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: prompt }],
  }
}

/** The parts of calls: the first of an answer is signed. */
const callParts = (answer, model) =>
  answer.toolCalls.map(({ name, pieces }, i) => {
    const functionCall = { name, args: JSON.parse(pieces.join('') || '{}') }
    const signs = i === 0 && isSigning(model)
    return { functionCall, ...(signs && { thoughtSignature: signatureOf(callText(functionCall)) }) }
  })

const isBlocked = answer =>
  answer.finish === 'content_filter' && answer.reasoning.length + answer.text.length + answer.toolCalls.length === 0

/** @type {import('./server.mjs').Wire} */
export const gemini = {
  name: 'gemini',
  path,
  check,

  read(body) {
    const last = body.contents.at(-1)
    const users = body.contents.filter(turn => turn.role === 'user' && textsOf(turn.parts).length > 0)
    const all = [body.systemInstruction, ...body.contents].flatMap(turn => textsOf(turn?.parts))
    const results = last.parts.flatMap(part => (part.functionResponse ? [part.functionResponse] : []))
    const functions = (body.tools ?? []).flatMap(tool => tool.functionDeclarations ?? [])
    return {
      model: body.model,
      n: body.generationConfig?.candidateCount ?? 1,
      text: textsOf(users.at(-1)?.parts).join(''),
      characters: [...all, ...results.map(resultOf)].reduce((sum, text) => sum + text.length, 0),
      tool: functions[0]?.name ?? null,
      toolResult: results.length > 0 ? resultOf(results.at(-1)) : null,
    }
  },

  claims: answer => answer.usage !== null,

  whole(answer, body) {
    const usage = answer.usage && { usageMetadata: usageMetadata(answer.usage) }
    const facts = { ...usage, modelVersion: answer.model, responseId: `resp-${answer.id}` }
    if (isBlocked(answer)) return { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, ...facts }
    const text = answer.text.join('')
    const signs = isSigning(body.model) && answer.toolCalls.length === 0
    const parts = [
      ...(answer.reasoning.length > 0 ? [{ text: answer.reasoning.join(''), thought: true }] : []),
      ...(text === '' ? [] : [{ text, ...(signs && { thoughtSignature: signatureOf(text) }) }]),
      ...callParts(answer, body.model),
    ]
    const candidate = index => ({
      ...(parts.length > 0 && { content: { role: 'model', parts } }),
      ...(answer.finish && { finishReason: finishReasons[answer.finish] ?? answer.finish }),
      index,
    })
    return { candidates: Array.from({ length: answer.n }, (_, index) => candidate(index)), ...facts }
  },

  /** Streams give one candidate. */
  frames(answer, body) {
    const total = Math.max(answer.chunks, 1)
    const frames = []
    let sent = 0
    const put = (content, chunks) => {
      sent += chunks
      const usage = answer.usage && { usageMetadata: usageMetadata(answer.usage, Math.min(1, sent / total)) }
      const payload = { ...content, ...usage, modelVersion: answer.model, responseId: `resp-${answer.id}` }
      frames.push({ bytes: event(payload), chunks })
    }
    const say = (parts, chunks) => put({ candidates: [{ content: { role: 'model', parts }, index: 0 }] }, chunks)
    if (isBlocked(answer)) {
      sent = total
      put({ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }, 0)
      return frames
    }
    for (const text of answer.reasoning) say([{ text, thought: true }], 1)
    for (const text of answer.text) say([{ text }], 1)
    for (const [i, part] of callParts(answer, body.model).entries()) say([part], answer.toolCalls[i].pieces.length)
    // The last chunk says nothing, but may sign what was said.
    const text = answer.text.join('')
    const signs = isSigning(body.model) && text !== '' && answer.toolCalls.length === 0
    const parts = [{ text: '', ...(signs && { thoughtSignature: signatureOf(text) }) }]
    const finishReason = finishReasons[answer.finish] ?? answer.finish
    sent = total
    put({ candidates: [{ content: { role: 'model', parts }, ...(finishReason && { finishReason }), index: 0 }] }, 0)
    return frames
  },

  error(status) {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1.5s' }]
    const word = words[status] ?? (status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL')
    const message = `Simulated failure ${status}.`
    return { error: { code: status, message, status: word, ...(status === 429 && { details }) } }
  },

  errorEvent: event,
}
