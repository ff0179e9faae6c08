/** Client wires of Google's API: `generateContent`, `streamGenerateContent` and `countTokens`. */

import type { ChatRequest } from '../core/chat-request.ts'
import type { Codec, Encoder } from '../core/codec.ts'
import type { Exchange } from '../core/exchange.ts'
import { s } from '../core/schema.ts'
import type { TokenCount } from '../core/wire.ts'
import { isObject } from '../json/json.ts'
import { checkCounts } from './chat-bounds.ts'
import { EVENT_STREAM } from './event-stream.ts'
import { credentials } from './gemini/credentials.ts'
import { decode, validate } from './gemini/decode.ts'
import { EVENTS, LIST, StreamEncoder, WholeEncoder } from './gemini/encoder.ts'
import { geminiError } from './gemini/error.ts'
import { nativeOf, nativeSize } from './gemini/native.ts'
import { checkResults } from './inner-json.ts'
import { nativeField } from './native-body.ts'
import { unsealed } from './unsealed.ts'
import { WholeEncoder as ValueEncoder } from './whole.ts'

/** Members whose numbers are meant for tools, by the name of their parent. */
const FOR_TOOLS: Readonly<Record<string, string>> = {
  functionCall: 'args',
  function_call: 'args',
  functionResponse: 'response',
  function_response: 'response',
}

function read(body: unknown, ex: Exchange, stream: boolean): ChatRequest {
  const { request, showsThoughts, body: given } = decode(body, ex.http.params.model!, stream, ex.input.values)
  checkCounts(request, ex.input.values)
  // Arguments of calls are objects here, counted with the body.
  checkResults(request, ex.input)
  ex.answer.showsReasoning = showsThoughts
  const seals = ex.caller.policy?.seals.check()
  ex.input.native = nativeOf(given, seals, ex.input.values, nativeSize(given, request))
  return seals ? unsealed(request, seals) : request
}

const codec = (wire: string, stream: boolean, encoder: (ex: Exchange) => Encoder) =>
  ({
    wire,
    exact: (_, name) => FOR_TOOLS[name],
    decode: (body: unknown, ex: Exchange) => read(body, ex, stream),
    encoder,
    credentials,
    fieldOf: nativeField('contents'),
    error: geminiError,
    // Citations refer to the text, and come when it has ended.
    holdsAnswers: true,
    requestSchema: validate.json,
    prepare: validate.prepare,
  }) satisfies Codec<'chat'>

/** Answers as one body. */
export const generateContent = codec('gemini.generate', false, ex => new WholeEncoder(ex))

const isEvents = ({ http: { query } }: Exchange): boolean => new URLSearchParams(query).get('alt') === 'sse'

/** Answers as server-sent events with `alt=sse`, else as a JSON array. */
export const streamGenerateContent: Codec<'chat'> = {
  ...codec('gemini.stream', true, ex => new StreamEncoder(ex, isEvents(ex) ? EVENTS : LIST)),
  // Not an SSE comment: clients take every non-empty line for data.
  heartbeat: { contentType: EVENT_STREAM, text: '\r\n\r\n', isFor: isEvents },
}

/** `contents`, or a whole request in a wrapper. */
const counted = (body: unknown): unknown =>
  isObject(body) ? (body.generateContentRequest ?? body.generate_content_request ?? body) : body

/** Counts the tokens of a prompt. */
export const countTokens: Codec<'chat'> = {
  ...codec('gemini.count', false, ex => new ValueEncoder<TokenCount>(ex, ({ tokens }) => ({ totalTokens: tokens }))),
  decode: (body, ex) => read(counted(body), ex, false),
  requestSchema: s.either(validate, s.open({ generateContentRequest: validate })).json,
}
