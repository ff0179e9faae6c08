/** Typed decisions: `POST /v1/systemone` (docs/contract.md#typed-decisions). */
import type { Operation } from '../../core/operation.ts'
import { demo } from './demo.ts'

/** Priced by prompt tokens. */
export const decisions: Operation<'decisions'> = {
  name: 'decisions',
  impliedBy: ({ output }) => output.includes('decision'),
  isPriced: ({ rates }) => rates.prompt !== undefined,
  requirements: [],
  promptCharacters: ({ state, questions }) => JSON.stringify(state).length + JSON.stringify(questions).length,
  tuning: {},
  demo,
}
