/** Client wire of local endpoints: no request body, one JSON value as answer, whole or in pieces of which each is a batch. */
import type { Codec, Encoder } from '../core/codec.ts'
import type { Event } from '../core/event.ts'
import { errorBody, errors } from '../lib/error.ts'

/** An answer of JSON bytes passes unchanged. */
export const json: Codec<never> = {
  wire: 'json',
  decode() {
    throw errors.internal(new Error('this endpoint reads no body'))
  },
  encoder: () => new ValueEncoder(),
  error: errorBody,
}

class ValueEncoder implements Encoder {
  readonly contentType = 'application/json'
  #out: string | Buffer = ''

  write(batch: readonly Event[]): Buffer | undefined {
    let piece: Buffer | undefined
    for (const event of batch) {
      if (event.type === 'result') this.#out = event.bytes ?? JSON.stringify(event.value)
      else if (event.type === 'bytes') piece = event.bytes
    }
    return piece
  }

  end(): string | Buffer {
    return this.#out
  }

  fail(): undefined {}
}
