/** Embeddings: answers in OpenAI's form, common to most providers, and inputs for wires that accept only texts. */
import {
  type Bounds,
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
import { errorIn, parsed, plainError, WholeDecoder } from '../answer.ts'
import { sliceOf } from './slice.ts'

/** A wire with its own request form, and OpenAI's form of answers. */
export const openAiFormWire = (wire: string, encode: Translator<'embeddings'>['encode']): Translator<'embeddings'> => ({
  op: 'embeddings',
  wire,
  encode,
  // Large answers pass unchanged; others are parsed and ordered.
  decoder: (_mode, target, input) => new WholeDecoder(frame => read(frame, target, input)),
  error: plainError,
})

function read(frame: Frame, target: Target, input: Readonly<EmbeddingRequest> | undefined): Event[] {
  const wanted = vectorsWanted(input)
  const slice = frame.bytes && sliceOf(frame.bytes)
  if (slice) {
    checkCount(slice.count, wanted)
    const value: Embeddings = { encoding: slice.encoding }
    return [...usageIn(slice.envelope), { type: 'result', value, bytes: slice.data }]
  }
  const answer = parsed(frame, boundsOf(input))
  if (!isObject(answer) || !Array.isArray(answer.data)) throw errorIn(answer, 'vectors', target)
  const value = embeddingsOf(inOrder(answer.data), wanted)
  return [...usageIn(answer), { type: 'result', value }]
}

type Numbers = readonly number[]

/** One encoding for all vectors; `made` converts numbers. Throws the error of an answer with invalid vectors. */
export function embeddingsOf(
  vectors: readonly unknown[],
  wanted?: number,
  made = (vector: Numbers): Numbers => vector,
): Embeddings {
  if (vectors.length === 0) throw noVectors()
  checkCount(vectors.length, wanted)
  if (vectors.every(isBase64)) return { encoding: 'base64', vectors }
  const numbers: Numbers[] = []
  for (const vector of vectors) {
    if (!isNumbers(vector)) throw noVectors()
    numbers.push(made(vector))
  }
  return { encoding: 'float', vectors: numbers }
}

/** One per input: callers match them by position. */
function checkCount(count: number, wanted: number | undefined): void {
  if (wanted === undefined || count === wanted) return
  throw errors.invalidAnswer(`it holds ${count} vectors for ${wanted} inputs`)
}

const noVectors = () => errors.invalidAnswer('it holds no vectors')
const isBase64 = (vector: unknown): vector is string => typeof vector === 'string' && vector !== ''
const isNumbers = (vector: unknown): vector is number[] =>
  Array.isArray(vector) && vector.length > 0 && vector.every(value => typeof value === 'number')

/** Vectors in the order of their indexes, which may differ from that of the list. Throws when one is missing. */
function inOrder(data: readonly unknown[]): unknown[] {
  const vectors = new Map<number, unknown>()
  for (const [position, entry] of data.entries()) {
    const index = isObject(entry) ? (entry.index ?? position) : undefined
    if (typeof index === 'number') vectors.set(index, (entry as Json).embedding)
  }
  return data.map((_, index) => {
    if (!vectors.has(index)) throw errors.invalidAnswer(`it holds no vector ${index}`)
    return vectors.get(index)
  })
}

/** `prompt_tokens`, or `total_tokens`: an embedding has no other tokens. */
function usageIn({ usage }: Json): Event[] {
  if (!isObject(usage)) return []
  return promptTokens(usage.prompt_tokens, usage.total_tokens)
}

/** A usage event with the first usable count; none without one. */
export function promptTokens(...counts: readonly unknown[]): Event[] {
  const prompt = counts.find((count): count is number => typeof count === 'number' && count > 0)
  return prompt === undefined ? [] : [{ type: 'usage', usage: { prompt: Math.ceil(prompt) } }]
}

/** Throws 400 for token ids. */
export function textsOf({ input, model }: Readonly<EmbeddingRequest>): string[] {
  const inputs = Array.isArray(input) ? input : [input]
  const texts: string[] = []
  for (const text of inputs) {
    if (typeof text !== 'string') throw errors.unsupported(`"${model}" takes no token ids here; send text.`, 'input')
    texts.push(text)
  }
  return texts
}

/** No model produces longer vectors. */
const MAX_DIMENSIONS = 8192
/** Other values of an entry, besides its vector, and of the whole answer. */
const ENTRY_VALUES = 16
const OTHER_VALUES = 1000

/** Derives the bounds of an answer from the request; undefined when the request is unknown. */
export function boundsOf(request: Readonly<EmbeddingRequest> | undefined): Bounds | undefined {
  const wanted = vectorsWanted(request)
  if (wanted === undefined) return undefined
  return { values: wanted * ((request?.dimensions ?? MAX_DIMENSIONS) + ENTRY_VALUES) + OTHER_VALUES }
}

/** Required number of vectors; any when the request is unknown. */
export function vectorsWanted(request: Readonly<EmbeddingRequest> | undefined): number | undefined {
  const input = request?.input
  if (input === undefined) return undefined
  return typeof input === 'string' || typeof input[0] === 'number' ? 1 : input.length
}
