/** Embeddings: `POST /v1/embeddings`. */
import { type Operation, type Requirement, type Simulation, takes } from '../../core/operation.ts'
import { TOKEN_BYTES, textSize } from '../../core/usage.ts'
import { hasTokenRates } from '../rates.ts'
import type { EmbeddingRequest } from './request.ts'
import { type DemoInputs, embed } from './simulated.ts'

/** Tokens of the longest input of token ids; the provider counts texts. */
function longest({ input }: EmbeddingRequest): number {
  if (!Array.isArray(input)) return 0
  const [first] = input
  if (typeof first === 'number') return input.length
  return typeof first === 'string' ? 0 : Math.max(...(input as number[][]).map(tokens => tokens.length))
}

/** Number of inputs. */
const inputsIn = ({ input }: Pick<EmbeddingRequest, 'input'>): number =>
  typeof input === 'string' || typeof input[0] === 'number' ? 1 : input.length

/** Dimensions, length of an input and number of inputs. */
const requirements: readonly Requirement<EmbeddingRequest>[] = [
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

/** Simulates OpenAI's embeddings API. */
const demo: Readonly<Record<string, Simulation>> = {
  '/embeddings': ({ json }) => ({ json: embed(json as DemoInputs & { model: string }) }),
}

/** 2,048 vectors of 1,536 numbers, or of 3,072 as base64. */
const answerBytes = 64 * 1024 * 1024

/** Priced by prompt tokens. */
export const embeddings: Operation<'embeddings'> = {
  name: 'embeddings',
  impliedBy: ({ output }) => output.includes('embedding'),
  isPriced: price => hasTokenRates(price, false),
  requirements,
  /** Each input is read with the title. */
  promptSize({ input, title = '' }) {
    if (!Array.isArray(input)) return textSize(input) + textSize(title)
    let sum = textSize(title) * inputsIn({ input })
    for (const one of input) sum += sizeOf(one)
    return sum
  },
  answerBytes,
  demo,
  tuning: { user: 'user' },
}

function sizeOf(input: Exclude<EmbeddingRequest['input'], string>[number]): number {
  if (typeof input === 'string') return textSize(input)
  return TOKEN_BYTES * (typeof input === 'number' ? 1 : input.length)
}
