/** Answers in the OpenAI form, which most providers of embeddings give. */
import {
  type EmbeddingRequest,
  type Embeddings,
  type Event,
  errors,
  type Frame,
  isObject,
  type Json,
  type Target,
  type Translator,
} from '../../../src/plugin.ts'
import { errorIn, plainError } from '../error.ts'
import { parsed, WholeDecoder } from '../whole.ts'
import { valuesWanted, vectorsWanted } from './inputs.ts'
import { sliceOf } from './slice.ts'

/** A wire that asks in its own way, is answered in this form, and mostly refuses in it. */
export const openAiFormWire = (
  wire: string,
  encode: Translator<'embeddings'>['encode'],
  error = plainError,
): Translator<'embeddings'> => ({
  op: 'embeddings',
  wire,
  encode,
  // Large answers pass as they are; the others are read and put in order.
  decoder: (_mode, target, input) => new WholeDecoder(frame => read(frame, target, input)),
  error,
})

function read(frame: Frame, target: Target, input: Readonly<EmbeddingRequest> | undefined): Event[] {
  const wanted = vectorsWanted(input)
  const slice = frame.bytes && sliceOf(frame.bytes)
  if (slice) {
    checkCount(slice.count, wanted)
    const value: Embeddings = { encoding: slice.encoding }
    return [...usageIn(slice.envelope), { type: 'result', value, bytes: slice.data }]
  }
  const answer = parsed(frame, valuesWanted(input))
  if (!isObject(answer) || !Array.isArray(answer.data)) throw errorIn(answer, 'vectors', target)
  return [...usageIn(answer), { type: 'result', value: embeddingsOf(inOrder(answer.data), wanted) }]
}

/** One encoding for all vectors. Throws the error of an answer whose vectors are none. */
export function embeddingsOf(vectors: readonly unknown[], wanted?: number): Embeddings {
  if (vectors.length > 0) checkCount(vectors.length, wanted)
  if (vectors.length > 0 && vectors.every(isBase64)) return { encoding: 'base64', vectors }
  if (vectors.length > 0 && vectors.every(isNumbers)) return { encoding: 'float', vectors }
  throw errors.invalidAnswer('it holds no vectors')
}

/** One for each input: callers put them together by their place. */
function checkCount(count: number, wanted: number | undefined): void {
  if (wanted === undefined || count === wanted) return
  throw errors.invalidAnswer(`it holds ${count} vectors for ${wanted} inputs`)
}

const isBase64 = (vector: unknown): vector is string => typeof vector === 'string' && vector !== ''
const isNumbers = (vector: unknown): vector is number[] =>
  Array.isArray(vector) && vector.length > 0 && vector.every(value => typeof value === 'number')

/** The vectors in the order of their indexes, which that of the list need not be. Throws when one is missing. */
function inOrder(data: readonly unknown[]): unknown[] {
  const vectors = new Map<unknown, unknown>()
  for (const [position, entry] of data.entries()) {
    if (isObject(entry)) vectors.set(entry.index ?? position, entry.embedding)
  }
  return data.map((_, index) => {
    if (!vectors.has(index)) throw errors.invalidAnswer(`it holds no vector ${index}`)
    return vectors.get(index)
  })
}

/** `prompt_tokens`, or `total_tokens` alone: an embedding has no other tokens. */
function usageIn({ usage }: Json): Event[] {
  if (!isObject(usage)) return []
  return promptTokens(usage.prompt_tokens, usage.total_tokens)
}

/** A usage event of the first count that says something; none without. */
export function promptTokens(...counts: readonly unknown[]): Event[] {
  const prompt = counts.find((count): count is number => typeof count === 'number' && count > 0)
  return prompt === undefined ? [] : [{ type: 'usage', usage: { prompt: Math.ceil(prompt) } }]
}
