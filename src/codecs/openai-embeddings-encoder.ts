/**
 * Writes an embeddings answer (docs/contract.md#embeddings) with an `id`, and the vectors in the requested encoding.
 */
import type { Encoder } from '../core/codec.ts'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { EmbeddingRequest, Embeddings } from '../operations/embeddings/request.ts'
import { answerIdOf, answerModelOf } from './accounting.ts'
import { givenVectors } from './embedding-vectors.ts'
import { toBase64, toNumbers } from './vectors.ts'

type Result = Extract<Event, { type: 'result' }>

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

  end(): string | readonly Buffer[] {
    const ex = this.#ex
    ex.completeUsage(false)
    const { encoding_format: asked } = ex.request as EmbeddingRequest
    const data = dataOf(this.#result!, asked ?? 'float')
    const tokens = ex.usage.prompt ?? 0
    const head = '{"object":"list","data":'
    const usage = `{"prompt_tokens":${tokens},"total_tokens":${tokens}}`
    const tail = `,"model":${JSON.stringify(answerModelOf(ex))},"usage":${usage},"id":"embd-${answerIdOf(ex)}"}`
    if (typeof data === 'string') return head + data + tail
    return [Buffer.from(head), data, Buffer.from(tail)]
  }

  fail(): undefined {}
}

/** The JSON of `data`: the provider's bytes if the encoding matches. */
function dataOf(result: Result, asked: Embeddings['encoding']): string | Buffer {
  const { value, bytes } = result
  const { encoding } = value as Embeddings
  if (bytes !== undefined && encoding === asked) return bytes
  return JSON.stringify(
    givenVectors(result).map((vector, index) => ({ object: 'embedding', index, embedding: written(vector, asked) })),
  )
}

function written(vector: readonly number[] | string, asked: Embeddings['encoding']): readonly number[] | string {
  if (typeof vector === 'string') return asked === 'base64' ? vector : toNumbers(vector)
  return asked === 'float' ? vector : toBase64(vector)
}
