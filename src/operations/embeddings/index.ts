/** Embeddings: `POST /v1/embeddings`. */
import type { Operation } from '../../core/operation.ts'
import { TOKEN_CHARACTERS } from '../../core/usage.ts'
import { hasTokenRates } from '../rates.ts'
import { demo } from './demo.ts'
import type { EmbeddingRequest } from './request.ts'
import { inputsIn, requirements } from './requirements.ts'

/** Priced by prompt tokens. */
export const embeddings: Operation<'embeddings'> = {
  name: 'embeddings',
  impliedBy: ({ output }) => output.includes('embedding'),
  isPriced: price => hasTokenRates(price, false),
  requirements,
  /** Each input is read with the title. */
  promptCharacters({ input, title = '' }) {
    if (!Array.isArray(input)) return input.length + title.length
    let sum = title.length * inputsIn({ input })
    for (const one of input) sum += charactersOf(one)
    return sum
  },
  demo,
  tuning: { user: 'user' },
}

function charactersOf(input: Exclude<EmbeddingRequest['input'], string>[number]): number {
  if (typeof input === 'string') return input.length
  return TOKEN_CHARACTERS * (typeof input === 'number' ? 1 : input.length)
}
