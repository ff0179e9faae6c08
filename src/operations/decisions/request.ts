/** The canonical request and answer of `POST /v1/systemone`, typed decisions (docs/contract.md#typed-decisions). */
import { type Infer, type Schema, s } from '../../core/schema.ts'

const OPTIONS = { minProperties: 2, maxProperties: 255 }
/** Text, or a value that a program wrote. */
const prose: Schema<string | object> = { json: { type: ['string', 'object', 'array'] } }

const question = s.tagged(
  s.open({
    type: s.enum('noul'),
    instructions: prose,
    criteria: s.maybe(s.open({ true: s.maybe(prose), false: s.maybe(prose) })),
  }),
  s.open({ type: s.enum('choice'), instructions: prose, criteria: s.record(s.nullable(prose), OPTIONS) }),
  s.open({
    type: s.enum('score'),
    instructions: prose,
    criteria: s.array(prose, { minItems: 2, maxItems: 10 }),
  }),
)
/** Without unknown and null fields. */
export type Question = Infer<typeof question>

/** As clients send it: up to 100 questions by their keys. */
export const decisionBody = s.open({
  model: s.string({ minLength: 1, maxLength: 256 }),
  state: prose,
  questions: s.record(question, { minProperties: 1, maxProperties: 100 }),
})

/** The canonical request. */
export interface DecisionRequest {
  readonly model: string
  readonly state: string | object
  readonly questions: Readonly<Record<string, Question>>
}

/** The answer to one question; probabilities are from 0 to 1. */
export type Decision =
  /** Probability of yes. */
  | { readonly type: 'noul'; readonly noul: number }
  | {
      readonly type: 'choice'
      readonly choice: string
      readonly probabilities: Readonly<Record<string, number>>
      readonly confidence: number
    }
  | {
      readonly type: 'score'
      /** May lie between two levels. */
      readonly score: number
      readonly legend: Readonly<Record<string, unknown>>
      readonly probabilities: Readonly<Record<string, number>>
      readonly confidence: number
    }

/** The value of a decisions `result`; `answers` in the order of the questions. */
export interface DecisionResult {
  readonly answers: Readonly<Record<string, Decision>>
  /** Free of charge. */
  readonly outputTokens: number
}

declare module '../../core/ops.ts' {
  interface Ops {
    decisions: DecisionRequest
  }
}
