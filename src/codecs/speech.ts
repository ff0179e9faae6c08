/** Client wire of `POST /v1/audio/speech` (docs/contract.md#speech): bytes as they come, or typed events. */

import type { Codec } from '../core/codec.ts'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import { CHARACTERS } from '../core/usage.ts'
import { codePoints } from '../lib/code-points.ts'
import { errors } from '../lib/error.ts'
import { type SpeechBody, type SpeechRequest, speechBody } from '../operations/speech/request.ts'
import { isPathSegment } from '../wire/wire.ts'
import { usdOf } from './accounting.ts'
import { BytesEncoder } from './bytes-encoder.ts'
import { typedEvent, typedHeartbeat } from './event-stream.ts'
import { checkedBy, validator } from './validate.ts'
import { costHeaders, TypedEncoder, targetHeaders } from './whole.ts'

const validate = validator(speechBody)
/** Bytes per event before base64: a multiple of its group size. */
const MAX_DELTA_BYTES = 48 * 1024
const UNKNOWN_TYPE = 'application/octet-stream'

const isTyped = ({ request }: Pick<Exchange, 'request'>): boolean =>
  (request as SpeechRequest | undefined)?.stream_format === 'sse'

/** Bytes unless `stream_format` is `sse`. */
export const speech = {
  wire: 'openai.speech',
  decode: body => canonical(validate(body)),
  encoder: ex => (isTyped(ex) ? new EventEncoder(ex) : new AudioEncoder(ex)),
  heartbeat: { ...typedHeartbeat, isFor: isTyped },
  ...checkedBy(validate),
} satisfies Codec<'speech'>

const canonical = (body: SpeechBody): SpeechRequest => ({
  model: body.model,
  input: body.input,
  characters: codePoints(body.input),
  voice: voiceIn(body),
  ...(typeof body.voice === 'object' && body.voice !== null && { own_voice: true }),
  response_format: body.response_format ?? undefined,
  speed: body.speed ?? undefined,
  instructions: body.instructions ?? undefined,
  stream_format: body.stream_format ?? 'audio',
  stream: true,
})

/** Throws a 400 for a name that no provider could have in a path, as several do. */
function voiceIn({ voice: given }: SpeechBody): string | undefined {
  const voice = (typeof given === 'object' ? given?.id : given) ?? undefined
  if (voice === undefined || isPathSegment(voice)) return voice
  throw errors.invalidField(
    'voice',
    'expected a name other than "." and "..", without control characters, backslashes and halves of characters',
  )
}

class AudioEncoder extends BytesEncoder {
  readonly #ex: Exchange

  constructor(ex: Exchange) {
    super(UNKNOWN_TYPE)
    this.#ex = ex
  }

  headers(): readonly string[] {
    const { target } = this.#ex
    // A charge by characters is known from the start.
    return target?.mapping.model.tokenizer === CHARACTERS ? costHeaders(this.#ex) : targetHeaders(this.#ex)
  }
}

class EventEncoder extends TypedEncoder {
  write(batch: readonly Event[]): string | undefined {
    let text = ''
    for (const event of batch) {
      if (event.type !== 'bytes') continue
      for (let at = 0; at < event.bytes.length; at += MAX_DELTA_BYTES) {
        const audio = event.bytes.toString('base64', at, at + MAX_DELTA_BYTES)
        text += typedEvent('speech.audio.delta', { audio })
      }
    }
    return text === '' ? undefined : text
  }

  end(): string {
    const { ex } = this
    ex.meter.complete(false)
    const { usage } = ex
    const { prompt = 0, output_audio: output = usage.completion ?? 0 } = usage
    return typedEvent('speech.audio.done', {
      usage: {
        input_tokens: prompt,
        output_tokens: output,
        total_tokens: prompt + output,
        cost: usdOf(ex),
      },
    })
  }
}
