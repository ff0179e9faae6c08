/** Client wire of `POST /v1/messages` (docs/contract.md#messages). */
import type { Codec } from '../core/codec.ts'
import { nativeField } from './address-field.ts'
import { checkCounts } from './chat-bounds.ts'
import { EVENT_STREAM } from './event-stream.ts'
import { checkResults } from './inner-json.ts'
import { prepare } from './messages/check.ts'
import { asksThinking, decode } from './messages/decode.ts'
import { messagesError } from './messages/error.ts'
import { nativeOf } from './messages/native.ts'
import { nativeSize } from './messages/native-size.ts'
import type { MessagesRequest } from './messages/schema.ts'
import { ID_HEADER, WIRE } from './messages/sink.ts'
import { StreamEncoder } from './messages/stream-encoder.ts'
import { unsealedBody } from './messages/unsealed.ts'
import { WholeEncoder } from './messages/whole-encoder.ts'
import { unsealed } from './unsealed.ts'

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
    const seals = ex.policy?.seals.check()
    ex.native = seals ? { ...native, body: unsealedBody(native.body, seals) } : native
    ex.showsReasoning = asksThinking(body as MessagesRequest)
    return seals ? unsealed(request, seals) : request
  },
  encoder: ex => (ex.streaming ? new StreamEncoder(ex) : new WholeEncoder(ex)),
  heartbeat: { contentType: EVENT_STREAM, text: 'event: ping\ndata: {"type":"ping"}\n\n' },
  idHeader: () => ID_HEADER,
  fieldOf: nativeField('messages'),
  error: messagesError,
  prepare,
} satisfies Codec<'chat'>
