/** The canonical request and answer of embeddings (docs/contract.md#embeddings). */
import { type Infer, type Schema, s } from '../../core/schema.ts'

/** A list of numbers is one input of token ids. The codec checks the lists, with better messages than a schema. */
const inputs: Schema<string | string[] | number[] | number[][]> = { json: { type: ['string', 'array'] } }

/** `POST /v1/embeddings`, docs/contract.md#embeddings. */
export const embeddingRequest = s.open({
  model: s.string({ minLength: 1, maxLength: 256 }),
  input: inputs,
  encoding_format: s.maybe(s.enum('float', 'base64')),
  dimensions: s.maybe(s.integer({ minimum: 1, maximum: 1_000_000 })),
  user: s.maybe(s.string()),
})

/** `task_type` and `title` are fields of Google's wires, not of an OpenAI body. */
export type EmbeddingRequest = Infer<typeof embeddingRequest> & { task_type?: string; title?: string }

/** The value of an embeddings `result`. */
export interface Embeddings {
  /** Encoding of the vectors: numbers, or base64 of their little-endian float32 bytes. */
  readonly encoding: 'float' | 'base64'
  /** In the order of the inputs; absent when the event's `bytes` are a `data` array of docs/contract.md#embeddings. */
  readonly vectors?: readonly (readonly number[] | string)[]
}

declare module '../../core/ops.ts' {
  interface Ops {
    embeddings: EmbeddingRequest
  }
}
