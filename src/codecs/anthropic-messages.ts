/** Client wire of `POST /v1/messages` (docs/contract.md#messages). */
import type { Codec } from '../core/codec.ts'
import { looksSealed, type SealCheck } from '../core/seals.ts'
import type { TokenCount } from '../core/wire.ts'
import { isObject, type Json } from '../json/json.ts'
import { loose, withOpaque } from '../json/opaque.ts'
import { checkCounts } from './chat-bounds.ts'
import { EVENT_STREAM } from './event-stream.ts'
import { checkResults } from './inner-json.ts'
import { prepare } from './messages/check.ts'
import { asksThinking, decode } from './messages/decode.ts'
import { messagesError } from './messages/error.ts'
import { nativeOf, nativeSize } from './messages/native.ts'
import { countRequest, type MessagesRequest, messagesRequest } from './messages/schema.ts'
import { ID_HEADER, WIRE } from './messages/sink.ts'
import { StreamEncoder } from './messages/stream-encoder.ts'
import { WholeEncoder } from './messages/whole-encoder.ts'
import { nativeField } from './native-body.ts'
import { UNSEALED, unsealed } from './unsealed.ts'
import { WholeEncoder as ValueEncoder } from './whole.ts'

/** Blocks and events as Anthropic's clients read them. */
export const anthropicMessages = {
  wire: WIRE,
  /** Arguments of calls are for tools only, which may need every digit. */
  exact: ({ type }, name) => (name === 'content' && type === 'tool_use' ? 'input' : undefined),
  /** Also passes the body on, for targets of the same wire. */
  decode(body, ex) {
    const request = decode(body)
    checkCounts(request, ex.input.values)
    // Arguments of calls are objects here, counted with the body.
    checkResults(request, ex.input)
    const size = nativeSize(body as Record<string, unknown>, request)
    const native = nativeOf(body as Record<string, unknown>, ex, size)
    const seals = ex.caller.policy?.seals.check()
    ex.input.native = seals ? { ...native, body: unsealedBody(native.body, seals) } : native
    ex.answer.showsReasoning = asksThinking(body as MessagesRequest)
    return seals ? unsealed(request, seals) : request
  },
  encoder: ex => (ex.streaming ? new StreamEncoder(ex) : new WholeEncoder(ex)),
  heartbeat: { contentType: EVENT_STREAM, text: 'event: ping\ndata: {"type":"ping"}\n\n' },
  idHeader: () => ID_HEADER,
  fieldOf: nativeField('messages'),
  error: messagesError,
  requestSchema: messagesRequest.json,
  prepare,
} satisfies Codec<'chat'>

/** Content of the assistant itself; every other block comes from the provider. */
const SPOKEN: ReadonlySet<unknown> = new Set(['text', 'tool_use'])

/** `body` has passed the endpoint's schema. The result shares unchanged parts with it. */
function unsealedBody(body: Readonly<Json>, seals: SealCheck): Readonly<Json> {
  const messages = (body.messages as Json[]).map(message => {
    const { role, content } = message
    if (role !== 'assistant' || !Array.isArray(content)) return message
    return { ...message, content: content.flatMap((block: Json) => unsealedBlock(block, seals)) }
  })
  return { ...body, messages }
}

/** Citations without a seal that holds are marked: on the operator's credentials they are left out. */
function unsealedText(block: Json, seals: SealCheck): Json {
  if (!Array.isArray(block.citations)) return block
  const open = (value: unknown) =>
    typeof value === 'string' ? (seals.value(value) ?? (looksSealed(value) ? UNSEALED : loose(value))) : value
  return { ...block, citations: block.citations.map(citation => withOpaque(citation, open)) }
}

function unsealedBlock(block: Json, seals: SealCheck): Json | [] {
  const { type, signature, data } = block
  if (type === 'thinking') return { ...block, signature: seals.value(String(signature)) ?? UNSEALED }
  if (type === 'redacted_thinking') return { ...block, data: seals.value(String(data)) ?? UNSEALED }
  if (type === 'text') return unsealedText(block, seals)
  return SPOKEN.has(type) ? block : (seals.block(block) ?? [])
}

/** Client wire of `POST /v1/messages/count_tokens`: counts the prompt of a Messages body. Answers `{ input_tokens }`. */
export const countTokens = {
  wire: anthropicMessages.wire,
  exact: anthropicMessages.exact,
  // Fields about the answer are neither required nor sent.
  decode: (body, ex) =>
    anthropicMessages.decode(isObject(body) ? Object.assign({}, body, { max_tokens: 1, stream: false }) : body, ex),
  encoder: ex => new ValueEncoder<TokenCount>(ex, ({ tokens }) => ({ input_tokens: tokens })),
  idHeader: anthropicMessages.idHeader,
  error: anthropicMessages.error,
  requestSchema: countRequest.json,
  prepare: anthropicMessages.prepare,
} satisfies Codec<'chat'>
