/** The simulated provider's moderation, in OpenAI's form: a text that names a category is flagged for it. */
import { SimulatedError, type Simulation } from '../../core/operation.ts'
import { categories, isParts, type ModerationRequest } from './request.ts'

const MAX_INPUTS = 256

/** The path of OpenAI's moderations API. */
export const demo: Readonly<Record<string, Simulation>> = {
  '/moderations'({ json }) {
    const { model, input } = json as ModerationRequest
    const texts = typeof input === 'string' ? [input] : isParts(input) ? [joined(input)] : input
    if (texts.length > MAX_INPUTS) throw new SimulatedError(`input: at most ${MAX_INPUTS} texts`, 'input')
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
