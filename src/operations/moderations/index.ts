/** Moderations: `POST /v1/moderations` (docs/contract.md#moderations). */
import { type Operation, type Requirement, SimulatedError, type Simulation } from '../../core/operation.ts'
import { textSize } from '../../core/usage.ts'
import { supports } from '../requirements.ts'
import { categories, isParts, type ModerationRequest, resultsWanted } from './request.ts'

const MAX_DEMO_INPUTS = 256

/** Simulates OpenAI's moderations API: a text that names a category is flagged for it. */
const demo: Readonly<Record<string, Simulation>> = {
  '/moderations'({ json }) {
    const { model, input } = json as ModerationRequest
    const texts = typeof input === 'string' ? [input] : isParts(input) ? [joined(input)] : input
    if (texts.length > MAX_DEMO_INPUTS) throw new SimulatedError(`input: at most ${MAX_DEMO_INPUTS} texts`, 'input')
    return { json: { id: 'modr-demo', model, results: texts.map(resultOf) } }
  },
}

const joined = (parts: readonly { type: string; text?: string }[]): string =>
  parts.map(({ text = '' }) => text).join('\n')

function resultOf(text: string): object {
  const words = text.toLowerCase()
  const found = (category: string) => words.includes(category)
  const each = <T>(value: (category: string) => T) =>
    Object.fromEntries(categories.map(category => [category, value(category)]))
  return {
    flagged: categories.some(found),
    categories: each(found),
    category_scores: each(category => (found(category) ? 1 : 0)),
    category_applied_input_types: each(() => ['text']),
  }
}

const requirements: readonly Requirement<ModerationRequest>[] = [
  supports(
    'input',
    'image input',
    'vision',
    ({ input }) => isParts(input) && input.some(({ type }) => type === 'image_url'),
  ),
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
