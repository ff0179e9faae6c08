/** Embeddings: `POST /v1/embeddings`. */
import type { Operation, Simulation } from '../../core/operation.ts'
import { TOKEN_BYTES, textSize } from '../../core/usage.ts'
import { hasTokenRates } from '../rates.ts'
import type { EmbeddingRequest } from './request.ts'
import { inputsIn, requirements } from './requirements.ts'
import { type DemoInputs, embed } from './simulated.ts'

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
