/** Inputs of an embeddings request, for wires that accept only texts. */
import { type Bounds, type EmbeddingRequest, errors } from '../../../src/plugin.ts'

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
