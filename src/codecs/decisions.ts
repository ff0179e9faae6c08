/** Client wire of `POST /v1/systemone` (docs/contract.md#typed-decisions). */
import type { Codec } from '../core/codec.ts'
import type { Exchange } from '../core/exchange.ts'
import { errors } from '../lib/error.ts'
import {
  type DecisionRequest,
  type DecisionResult,
  decisionBody,
  type Question,
} from '../operations/decisions/request.ts'
import { answererOf, answerModelOf } from './accounting.ts'
import { checkedBy, validator } from './validate.ts'
import { WholeEncoder } from './whole.ts'

const MAX_STATE_BYTES = 1024 * 1024
const KEY = /^[A-Za-z0-9_.-]{1,64}$/

const validate = validator(decisionBody)

/** Keeps known fields only. Throws 400 for an invalid key, and for a state above 1 MiB of JSON. */
export const decisions = {
  wire: 'typesafe.decisions',
  decode(body): DecisionRequest {
    const { model, state, questions } = validate(body)
    if (Buffer.byteLength(JSON.stringify(state)) > MAX_STATE_BYTES)
      throw errors.invalidField('state', 'must be at most 1 MiB of JSON')
    const known = Object.entries(questions).map(([key, question]) => [key, checked(key, question)] as const)
    return { model, state, questions: Object.fromEntries(known) }
  },
  encoder: ex => new WholeEncoder<DecisionResult>(ex, written),
  ...checkedBy(validate),
} satisfies Codec<'decisions'>

/** The known fields of a question; null counts as absent. */
function checked(key: string, question: Question): Question {
  const path = `questions.${key.slice(0, 64)}`
  if (!KEY.test(key)) throw errors.invalidField(path, 'a key must be 1 to 64 letters, digits, "_", "." and "-"')
  const { type, instructions } = question
  if (isEmpty(instructions)) throw errors.invalidField(`${path}.instructions`, 'must not be empty')
  if (type === 'choice') return { type, instructions, criteria: question.criteria }
  if (type === 'score') return { type, instructions, criteria: question.criteria }
  const { true: yes = null, false: no = null } = question.criteria ?? {}
  if (yes === null && no === null) return { type, instructions }
  if (no === null) return { type, instructions, criteria: { true: yes } }
  return { type, instructions, criteria: yes === null ? { false: no } : { true: yes, false: no } }
}

const isEmpty = (prose: string | object): boolean =>
  typeof prose === 'string' ? prose === '' : Object.keys(prose).length === 0

function written({ answers, outputTokens }: DecisionResult, ex: Exchange): object {
  const model = `${answererOf(ex)}/${answerModelOf(ex)}`
  return { model, answers, usage: { input_tokens: ex.usage.prompt ?? 0, output_tokens: outputTokens } }
}
