/** The wire of typed decisions, `typesafe.decisions` (docs/contract.md#typed-decisions). */
import {
  countIn,
  type Decision,
  type DecisionRequest,
  type DecisionResult,
  errors,
  isObject,
  type Json,
  objectIn,
  type Plugin,
  type Question,
  type Target,
  type Translator,
} from '../src/plugin.ts'
import { errorIn, parsed, plainError, WholeDecoder } from './shared/answer.ts'

const decisions: Translator<'decisions'> = {
  op: 'decisions',
  wire: 'typesafe.decisions',
  encode: ({ state, questions }, { mapping }) => ({
    path: '/systemone',
    body: { model: mapping.externalId, state, questions },
  }),
  decoder: (_mode, target, input) => new WholeDecoder(frame => read(parsed(frame), target, input!)),
  error: plainError,
}

function read(
  answer: unknown,
  target: Target,
  { questions }: Readonly<DecisionRequest>,
): ReturnType<WholeDecoder['frame']> {
  const given = objectIn(answer).answers
  if (!isObject(given)) throw errorIn(answer, 'answers', target)
  const { usage } = answer as Json
  const { input_tokens, output_tokens } = objectIn(usage)
  const prompt = countIn(input_tokens)
  const answers = Object.entries(questions).map(([key, question]) => {
    const one = Object.hasOwn(given, key) ? given[key] : undefined
    if (!isObject(one) || one.type !== question.type) throw wrong(key, `is no "${question.type}"`)
    return [key, decisionOf(key, question, one)] as const
  })
  const value: DecisionResult = {
    answers: Object.fromEntries(answers),
    outputTokens: countIn(output_tokens) ?? 0,
  }
  return [...(prompt === undefined ? [] : [{ type: 'usage' as const, usage: { prompt } }]), { type: 'result', value }]
}

/** Throws for an answer that does not fit its question (docs/contributing/edge-cases.md#media M16). */
function decisionOf(key: string, question: Question, given: Json): Decision {
  if (question.type === 'noul') return { type: 'noul', noul: share(key, 'noul', given.noul) }
  if (question.type === 'choice') {
    const { choice } = given
    if (typeof choice !== 'string' || !Object.hasOwn(question.criteria, choice))
      throw wrong(key, 'is none of the options')
    const probabilities = sharesOf(key, given.probabilities, Object.keys(question.criteria))
    return { type: 'choice', choice, probabilities, confidence: confidenceOf(key, given, probabilities, choice) }
  }
  const { score, legend } = given
  const levels = question.criteria.map((_, index) => String(index))
  if (typeof score !== 'number' || !(score >= 0 && score <= levels.length - 1))
    throw wrong(key, 'has no score of the levels')
  const probabilities = sharesOf(key, given.probabilities, levels)
  return {
    type: 'score',
    score,
    legend: legendOf(legend, question.criteria),
    probabilities,
    confidence: confidenceOf(key, given, probabilities, String(Math.round(score))),
  }
}

/** Meaning of each level: from the answer, else from the question. */
function legendOf(given: unknown, criteria: readonly unknown[]): Record<string, unknown> {
  const legend = objectIn(given)
  const meanings = criteria.map((own, level) => [level, Object.hasOwn(legend, level) ? legend[level] : own] as const)
  return Object.fromEntries(meanings)
}

/** The probability of the choice when the provider gives no confidence. Throws without either. */
function confidenceOf(
  key: string,
  { confidence }: Json,
  probabilities: Record<string, number>,
  chosen: string,
): number {
  if (confidence !== undefined && confidence !== null) return share(key, 'confidence', confidence)
  if (Object.hasOwn(probabilities, chosen)) return probabilities[chosen]!
  throw wrong(key, 'has neither a confidence nor the probability of what it chose')
}

function sharesOf(key: string, given: unknown, names: readonly string[]): Record<string, number> {
  const shares = Object.entries(objectIn(given))
  const strange = shares.find(([name]) => !names.includes(name))
  if (strange) throw wrong(key, 'has a probability of something that was no option')
  return Object.fromEntries(shares.map(([name, value]) => [name, share(key, 'probability', value)]))
}

function share(key: string, what: string, value: unknown): number {
  if (typeof value === 'number' && value >= 0 && value <= 1) return value
  throw wrong(key, `has a ${what} that is not from 0 to 1`)
}

const wrong = (key: string, why: string) => errors.invalidAnswer(`the answer to "${key}" ${why}`)

/** The System One API, `POST /systemone`. */
export const plugin = { wires: [decisions] as const } satisfies Plugin
