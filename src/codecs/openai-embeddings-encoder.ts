/**
 * Writes an embeddings answer (docs/contract.md#embeddings) with an `id`, and the vectors in the requested encoding.
 */
import type { Encoded, Encoder } from '../core/codec.ts'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { EmbeddingRequest, Embeddings } from '../operations/embeddings/request.ts'
import { answerIdOf, answerModelOf } from './accounting.ts'
import { givenVectors, type Vector } from './embedding-vectors.ts'
import { toBase64, toNumbers } from './vectors.ts'

type Result = Extract<Event, { type: 'result' }>

/** Passes the provider's bytes through where their encoding is the requested one. */
export class EmbeddingsEncoder implements Encoder {
  readonly contentType = 'application/json'
  readonly #ex: Exchange
  #result: Result | undefined

  constructor(ex: Exchange) {
    this.#ex = ex
  }

  write(batch: readonly Event[]): undefined {
    for (const event of batch) if (event.type === 'result') this.#result = event
  }

  end(): Encoded {
    const ex = this.#ex
    ex.completeUsage(false)
    const { encoding_format } = ex.request as EmbeddingRequest
    const asked = encoding_format ?? 'float'
    const { value, bytes } = this.#result!
    const tokens = ex.usage.prompt ?? 0
    const about = {
      model: answerModelOf(ex),
      usage: { prompt_tokens: tokens, total_tokens: tokens },
      id: `embd-${answerIdOf(ex)}`,
    }
    const head = '{"object":"list","data":'
    const tail = `,${JSON.stringify(about).slice(1)}`
    // The provider's bytes if the encoding matches.
    if (bytes !== undefined && (value as Embeddings).encoding === asked) {
      return typeof bytes === 'string' ? head + bytes + tail : [Buffer.from(head), bytes, Buffer.from(tail)]
    }
    const data = givenVectors(this.#result!).map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: encoded(vector, asked),
    }))
    return head + JSON.stringify(data) + tail
  }

  fail(): undefined {}
}

function encoded(vector: Vector, asked: Embeddings['encoding']): Vector {
  if (typeof vector === 'string') return asked === 'base64' ? vector : toNumbers(vector)
  return asked === 'float' ? vector : toBase64(vector)
}
