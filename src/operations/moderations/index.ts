/** Moderations: `POST /v1/moderations` (docs/contract.md#moderations). */
import type { Operation, Requirement } from '../../core/operation.ts'
import { textSize } from '../../core/usage.ts'
import { demo } from './demo.ts'
import { isParts, type ModerationRequest, resultsWanted } from './request.ts'

const requirements: readonly Requirement<ModerationRequest>[] = [
  {
    param: 'input',
    what: 'image input',
    needed: ({ input }) => isParts(input) && input.some(({ type }) => type === 'image_url'),
    met: mapping => mapping.supports.has('vision'),
  },
]

/** Priced by prompt tokens or by the request. */
export const moderations: Operation<'moderations'> = {
  name: 'moderations',
  impliedBy: ({ output }) => output.includes('moderation'),
  isPriced: ({ rates }) => rates.prompt !== undefined || rates.request !== undefined,
  requirements,
  promptSize({ input }) {
    if (typeof input === 'string') return textSize(input)
    let sum = 0
    for (const one of input) {
      if (typeof one === 'string') sum += textSize(one)
      else if (one.type === 'text') sum += textSize(one.text)
    }
    return sum
  },
  media({ input }) {
    const images = isParts(input) ? input.filter(({ type }) => type === 'image_url') : []
    return { images: images.map(() => undefined), audioSeconds: 0, fileTokens: 0 }
  },
  prompts: resultsWanted,
  extras: () => ({ request: 1 }),
  tuning: {},
  ignoresModelRules: true,
  demo,
}
