/** Typed decisions: `POST /v1/systemone` (docs/contract.md#typed-decisions). */
import { type Operation, SimulatedError, type Simulation } from '../../core/operation.ts'
import { textSize } from '../../core/usage.ts'
import type { DecisionRequest, Question } from './request.ts'

const MAX_QUESTIONS = 256
/** Options and levels of all questions together. */
const MAX_CRITERIA = 4096

/** Simulates the decisions API: the first option, the middle level, and a probability of one half. */
const demo: Readonly<Record<string, Simulation>> = {
  '/systemone'({ json, body }) {
    const { model, questions } = json as DecisionRequest
    const all = Object.values(questions)
    if (all.length > MAX_QUESTIONS) {
      throw new SimulatedError(`questions: at most ${MAX_QUESTIONS}, got ${all.length}`, 'questions')
    }
    const criteria = all.reduce((sum, question) => sum + sizeOf(question), 0)
    if (criteria > MAX_CRITERIA) {
      throw new SimulatedError(`questions: at most ${MAX_CRITERIA} criteria of all, got ${criteria}`, 'questions')
    }
    const answers = Object.entries(questions).map(([key, question]) => [key, decided(question)] as const)
    const usage = { input_tokens: Math.ceil(body.length / 4), output_tokens: answers.length }
    return { json: { model, answers: Object.fromEntries(answers), usage } }
  },
}

const sizeOf = (question: Question): number => (question.type === 'noul' ? 0 : Object.keys(question.criteria).length)

function decided(question: Question): object {
  switch (question.type) {
    case 'noul':
      return { type: 'noul', noul: 0.5 }
    case 'choice': {
      const options = Object.keys(question.criteria)
      return { type: 'choice', choice: options[0], probabilities: evenly(options), confidence: 1 / options.length }
    }
    case 'score': {
      const levels = question.criteria.map((_, index) => String(index))
      return { type: 'score', score: (levels.length - 1) / 2, probabilities: evenly(levels) }
    }
  }
}

const evenly = (names: readonly string[]): Record<string, number> =>
  Object.fromEntries(names.map(name => [name, 1 / names.length]))

/** Priced by prompt tokens. */
export const decisions: Operation<'decisions'> = {
  name: 'decisions',
  impliedBy: ({ output }) => output.includes('decision'),
  isPriced: ({ rates }) => rates.prompt !== undefined,
  requirements: [],
  promptSize: ({ state, questions }) => textSize(JSON.stringify(state)) + textSize(JSON.stringify(questions)),
  tuning: {},
  demo,
}
