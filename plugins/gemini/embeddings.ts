/** Google's embeddings: three methods of one wire (docs/contributing/wire-sources.md#gemini). All answer with numbers only. */
import {
  countIn,
  type Decoder,
  type EmbeddingRequest,
  errors,
  isObject,
  type Json,
  listIn,
  objectIn,
  pathSegment,
  type Target,
  type Translator,
  type WireRequest,
  wellFormed,
} from '../../src/plugin.ts'
import { parsed, WholeDecoder } from '../shared/answer.ts'
import { boundsOf, embeddingsOf, promptTokens, textsOf, vectorsWanted } from '../shared/embeddings/openai-form.ts'
import { error, errorOf } from './error.ts'
import { studio, vertex } from './surface.ts'

/** Request of one method, and the place of vectors and tokens in its answer. */
interface Method {
  readonly wire: string
  readonly maxInputs?: number
  encode(request: Readonly<EmbeddingRequest>, target: Target): WireRequest
  vectors(answer: Json): readonly unknown[]
  /** Undefined when the method does not count. */
  tokens(answer: Json): number | undefined
}

/** Purpose of the vectors, as a client of this wire gives it. */
const taskOf = ({ task_type: taskType, title }: Readonly<EmbeddingRequest>): Json => ({
  ...(taskType !== undefined && { taskType }),
  ...(title !== undefined && { title }),
})
const contentOf = (text: string): Json => ({ parts: [{ text }] })
const objectsIn = (value: unknown): Json[] => listIn(value).filter(isObject)

function wireRequest(models: string, { mapping }: Target, method: string, body: Json): WireRequest {
  return { path: `${models}/${pathSegment(mapping.externalId)}:${method}`, body: wellFormed(body) as Json }
}

/** AI Studio: a batch of requests. */
const batch: Method = {
  wire: 'gemini.embeddings',
  maxInputs: 100,
  encode(request, target) {
    const { dimensions } = request
    const size = dimensions == null ? {} : { outputDimensionality: dimensions }
    const model = `models/${target.mapping.externalId}`
    const requests = textsOf(request).map(text => ({ model, content: contentOf(text), ...taskOf(request), ...size }))
    return wireRequest(studio.models, target, 'batchEmbedContents', { requests })
  },
  vectors: answer => objectsIn(answer.embeddings).map(({ values }) => values),
  tokens: answer => countIn(objectIn(answer.usageMetadata).promptTokenCount),
}

const instanceOf = (content: string, { task_type, title }: Readonly<EmbeddingRequest>): Json => ({
  content,
  ...(task_type !== undefined && { task_type }),
  ...(title !== undefined && { title }),
})

/** Vertex AI, older models. Texts that are too long are rejected, not truncated. */
const predict: Method = {
  wire: 'gemini.vertex-embeddings',
  maxInputs: 250,
  encode(request, target) {
    const { dimensions } = request
    return wireRequest(vertex.models, target, 'predict', {
      instances: textsOf(request).map(content => instanceOf(content, request)),
      parameters: { autoTruncate: false, ...(dimensions != null && { outputDimensionality: dimensions }) },
    })
  },
  vectors: answer => objectsIn(answer.predictions).map(({ embeddings }) => objectIn(embeddings).values),
  tokens(answer) {
    const counts = objectsIn(answer.predictions).map(({ embeddings }) =>
      countIn(objectIn(objectIn(embeddings).statistics).token_count),
    )
    return counts.includes(undefined) ? undefined : counts.reduce((sum: number, tokens) => sum + tokens!, 0)
  },
}

/** Vertex AI, models since gemini-embedding-2: one text per request. */
const embedContent: Method = {
  wire: 'gemini.vertex-embed-content',
  maxInputs: 1,
  encode(request, target) {
    const { dimensions } = request
    const [text] = textsOf(request)
    return wireRequest(vertex.models, target, 'embedContent', {
      content: contentOf(text!),
      embedContentConfig: {
        autoTruncate: false,
        ...taskOf(request),
        ...(dimensions != null && { outputDimensionality: dimensions }),
      },
    })
  },
  vectors: ({ embedding }) => [objectIn(embedding).values],
  tokens: answer => countIn(objectIn(answer.usageMetadata).promptTokenCount),
}

/** Vectors of numbers are scaled to the length 1. Throws a GatewayError for other answers. */
const decoder = ({ vectors, tokens }: Method, target: Target, input?: Readonly<EmbeddingRequest>): Decoder =>
  new WholeDecoder(frame => {
    const answer = parsed(frame, boundsOf(input))
    const reported = errorOf(answer, target)
    if (reported) throw reported
    if (!isObject(answer)) throw errors.invalidAnswer('it is not a JSON object')
    const value = embeddingsOf(vectors(answer), vectorsWanted(input), unit)
    return [...promptTokens(tokens(answer)), { type: 'result', value }]
  })

const wireOf = (method: Method): Translator<'embeddings'> => ({
  op: 'embeddings',
  wire: method.wire,
  ...(method.maxInputs !== undefined && { maxInputs: method.maxInputs }),
  encode: method.encode,
  decoder: (_mode, target, input) => decoder(method, target, input),
  error,
})

/** The wires of embeddings, a method each. */
export const embeddings = [batch, predict, embedContent].map(wireOf)

/** Rounding error allowed in the square of a unit length. */
const ROUNDING = 1e-3

/** Vectors of this wire have length 1, except shortened ones (`outputDimensionality`). */
function unit(vector: readonly number[]): readonly number[] {
  let square = 0
  for (const value of vector) square += value * value
  if (square === 0 || Math.abs(square - 1) < ROUNDING) return vector
  const length = Math.sqrt(square)
  return vector.map(value => value / length)
}
