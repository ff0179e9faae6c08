/** The inputs of an embeddings request, for wires that take texts only. */
import { type EmbeddingRequest, errors } from '../../src/plugin.ts'

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

/** How many vectors an answer must hold; any number when the request is not known. */
export function vectorsWanted(request: Readonly<EmbeddingRequest> | undefined): number | undefined {
  const input = request?.input
  if (input === undefined) return undefined
  return typeof input === 'string' || typeof input[0] === 'number' ? 1 : input.length
}
