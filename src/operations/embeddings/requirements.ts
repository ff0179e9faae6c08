/** Requirements of an embeddings request on a mapping. */
import { type Requirement, takes } from '../../core/operation.ts'
import type { EmbeddingRequest } from './request.ts'

/** Tokens of the longest input of token ids; the provider counts texts. */
function longest({ input }: EmbeddingRequest): number {
  if (!Array.isArray(input)) return 0
  const [first] = input
  if (typeof first === 'number') return input.length
  return typeof first === 'string' ? 0 : Math.max(...(input as number[][]).map(tokens => tokens.length))
}

/** Number of inputs. */
export const inputsIn = ({ input }: Pick<EmbeddingRequest, 'input'>): number =>
  typeof input === 'string' || typeof input[0] === 'number' ? 1 : input.length

/** Dimensions, length of an input and number of inputs. */
export const requirements: readonly Requirement<EmbeddingRequest>[] = [
  {
    param: 'dimensions',
    what: 'dimensions',
    needed: request => request.dimensions != null,
    met: mapping => takes(mapping, 'dimensions'),
  },
  {
    param: 'input',
    what: 'so many tokens in one input',
    code: 'context_length_exceeded',
    needed: request => longest(request) > 0,
    offers: ({ contextLength }) => contextLength,
    met: ({ contextLength = Infinity }, request) => longest(request) <= contextLength,
  },
  {
    param: 'input',
    what: 'so many inputs in one request',
    needed: request => inputsIn(request) > 1,
    offers: ({ wires }) => wires.get('embeddings')?.maxInputs,
    met: ({ wires }, request) => inputsIn(request) <= (wires.get('embeddings')?.maxInputs ?? Infinity),
  },
]
