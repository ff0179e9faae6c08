/** Client wire of `POST /v1/responses` (docs/responses.md). */
import type { Codec } from '../core/codec.ts'
import { errorBody } from '../core/error.ts'
import type { Json } from '../core/json.ts'
import { EVENT_STREAM } from './event-stream.ts'
import { checkTexts } from './inner-json.ts'
import { decode, validate } from './responses/decode.ts'
import { StreamEncoder, WholeEncoder } from './responses/encoder.ts'
import { noteToolNames } from './responses/tool-names.ts'
import { unsealed } from './unsealed.ts'

const WIRE = 'openai.responses'

export const openAiResponses = {
  wire: WIRE,
  /** Also keeps the body, most of which the answer repeats. */
  decode(body, ex) {
    const { request, names, only } = decode(body, ex.values)
    noteToolNames(ex, names)
    checkTexts(request, ex.values)
    ex.native = { wire: WIRE, body: body as Json, only }
    ex.showsReasoning = true
    return ex.policy ? unsealed(request, ex.policy.seals.check()) : request
  },
  holdsAnswers: true,
  encoder: ex => (ex.streaming ? new StreamEncoder(ex) : new WholeEncoder(ex)),
  heartbeat: { contentType: EVENT_STREAM, text: ': waiting for the provider\n\n' },
  error: errorBody,
  prepare: validate.prepare,
} satisfies Codec<'chat'>
