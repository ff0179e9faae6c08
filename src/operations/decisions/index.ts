/** Typed decisions: `POST /v1/systemone` (docs/contract.md#typed-decisions). */
import type { Operation } from '../../core/operation.ts'
import { textSize } from '../../core/usage.ts'
import { demo } from './demo.ts'

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
