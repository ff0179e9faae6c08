/** Client wire of `POST /v1/responses` (docs/responses.md). */
import type { Codec } from '../core/codec.ts'
import type { Json } from '../json/json.ts'
import { checkCounts } from './chat-bounds.ts'
import { EVENT_STREAM } from './event-stream.ts'
import { checkTexts } from './inner-json.ts'
import { nativeField } from './native-body.ts'
import { openAiError } from './overflow.ts'
import { decode, validate } from './responses/decode.ts'
import { StreamEncoder, WholeEncoder } from './responses/encoder.ts'
import { nativeOf, nativeSize, WIRE } from './responses/native.ts'
import { stored } from './responses/stored.ts'
import { noteToolNames } from './responses/tool-names.ts'
import { unsealed } from './unsealed.ts'

/** The codec of the Responses API. */
export const openAiResponses = {
  wire: WIRE,
  /** Also keeps the body, most of which the answer repeats. */
  decode(body, ex) {
    const { request, names, only } = decode(body, ex.input.values)
    noteToolNames(ex, names)
    checkCounts(request, ex.input.values)
    checkTexts(request, ex.input)
    const seals = ex.caller.policy?.seals.check()
    ex.input.native = nativeOf(body as Json, seals, ex.input.values, only, nativeSize(body as Json, request))
    ex.answer.showsReasoning = true
    return seals ? unsealed(request, seals) : request
  },
  stored,
  dropsReasoning: true,
  holdsAnswers: true,
  encoder: ex => (ex.streaming ? new StreamEncoder(ex) : new WholeEncoder(ex)),
  heartbeat: { contentType: EVENT_STREAM, text: ': waiting for the provider\n\n' },
  fieldOf: nativeField('input'),
  error: openAiError,
  requestSchema: validate.json,
  prepare: validate.prepare,
} satisfies Codec<'chat'>
