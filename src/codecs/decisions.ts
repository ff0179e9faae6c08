/** Client wire of `POST /v1/systemone` (media.md section 9). */
import type { Codec } from '../core/codec.ts'
import { errorBody, errors } from '../core/error.ts'
import type { Exchange } from '../core/exchange.ts'
import { type Decided, type DecisionRequest, decisionBody, type Question } from '../operations/decisions/request.ts'
import { answererOf, answerModelOf } from './accounting.ts'
import { validator } from './validate.ts'
import { WholeEncoder } from './whole.ts'

const MAX_STATE = 1024 * 1024
const MAX_QUESTIONS = 100
const KEY = /^[A-Za-z0-9_.-]{1,64}$/
const OPTIONS = { least: 2, most: 255 }

const validate = validator(decisionBody)

export const decisions = {
  wire: 'typesafe.decisions',
  decode(body): DecisionRequest {
    const { model, state, questions } = validate(body)
    if (JSON.stringify(state).length > MAX_STATE) throw refuse('state', 'must be at most 1 MiB of JSON')
    const entries = Object.entries(questions)
    if (entries.length === 0 || entries.length > MAX_QUESTIONS) {
      throw refuse('questions', `must hold 1 to ${MAX_QUESTIONS} questions, got ${entries.length}`)
    }
    for (const [key, question] of entries) check(key, question)
    return { model, state, questions }
  },
  encoder: ex => new WholeEncoder<Decided>(ex, written),
  error: errorBody,
  prepare: validate.prepare,
} satisfies Codec<'decisions'>

function check(key: string, { type, instructions, criteria }: Question): void {
  const path = `questions.${key.slice(0, 64)}`
  if (!KEY.test(key)) throw refuse(path, 'a key must be 1 to 64 letters, digits, "_", "." and "-"')
  if (Object.keys(instructions).length === 0) throw refuse(`${path}.instructions`, 'must not be empty')
  if (type !== 'choice') return
  const count = Object.keys(criteria).length
  if (count >= OPTIONS.least && count <= OPTIONS.most) return
  throw refuse(`${path}.criteria`, `must hold ${OPTIONS.least} to ${OPTIONS.most} options, got ${count}`)
}

const refuse = (path: string, message: string) => errors.invalidParameters(`${path}: ${message}`, path)

function written({ answers, outputTokens }: Decided, ex: Exchange): object {
  const model = `${answererOf(ex)}/${answerModelOf(ex)}`
  return { model, answers, usage: { input_tokens: ex.usage.prompt ?? 0, output_tokens: outputTokens } }
}
