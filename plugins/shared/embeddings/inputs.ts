/** The inputs of an embeddings request, for wires that take texts only. */
import { type EmbeddingRequest, errors } from '../../../src/plugin.ts'

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

/** No model makes longer vectors. */
const MAX_DIMENSIONS = 8192
/** Of an answer's entry besides its vector, and of all else. */
const ENTRY_VALUES = 16
const OTHER_VALUES = 1000

/** JSON values that an answer may hold, by what was asked for; undefined when the request is not known. */
export function valuesWanted(request: Readonly<EmbeddingRequest> | undefined): number | undefined {
  const wanted = vectorsWanted(request)
  if (wanted === undefined) return undefined
  return wanted * ((request?.dimensions ?? MAX_DIMENSIONS) + ENTRY_VALUES) + OTHER_VALUES
}

/** How many vectors an answer must hold; any number when the request is not known. */
export function vectorsWanted(request: Readonly<EmbeddingRequest> | undefined): number | undefined {
  const input = request?.input
  if (input === undefined) return undefined
  return typeof input === 'string' || typeof input[0] === 'number' ? 1 : input.length
}
