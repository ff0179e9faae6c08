/** What the answer of a provider may hold. One that holds more is a failure of its provider, and no real one does. */
import { errors, type GatewayError } from './error.ts'
import { parseSteps } from './json-steps.ts'
import { MAX_LEVELS, MAX_VALUES, Shape } from './shape.ts'

export const MAX_ANSWER_VALUES = 1_000_000
/** In the arguments of all calls, which come back in a request and are bounded there. */
export const MAX_CALL_VALUES = MAX_VALUES
export const MAX_CALL_CHARACTERS = 4 * 1024 * 1024
export const MAX_CALLS = 1000
export const MAX_REASONING_BLOCKS = 1000
export const MAX_CHOICES = 1024
/** Entries of one list: of parts, of blocks, of sources. */
const MAX_ENTRIES = 10_000
/** Shorter text, with two brackets for each level, cannot nest too deep. */
const SHORT = 2 * MAX_LEVELS

const tooMany = (most: number, what: string): GatewayError =>
  errors.invalidAnswer(`it holds more than ${most.toLocaleString('en')} ${what}`)

export const tooManyCalls = (): GatewayError => tooMany(MAX_CALLS, 'tool calls')
export const tooManyBlocks = (): GatewayError => tooMany(MAX_REASONING_BLOCKS, 'blocks of reasoning')

export const tooLongCalls = (): GatewayError =>
  errors.invalidAnswer(`the arguments of its tool calls are longer than ${MAX_CALL_CHARACTERS} characters`)

/** Throws the failure of an answer, or an event of one, that nests too deep or holds too many values. */
export function checkAnswer(json: string, most = MAX_ANSWER_VALUES): void {
  if (json.length <= SHORT) return
  const shape = new Shape(most)
  shape.add(json)
  if (shape.excess !== undefined) throw excessive(shape, most)
}

/** The failure of an answer whose `shape` passes its bounds. */
export const excessive = ({ excess }: Shape, most = MAX_ANSWER_VALUES): GatewayError =>
  excess === 'levels' ? errors.invalidAnswer(`it nests deeper than ${MAX_LEVELS} levels`) : tooMany(most, 'JSON values')

/** As `JSON.parse`, for answers within the bounds. Throws a SyntaxError, or the failure of one that passes them. */
export function parseAnswer(json: string, most?: number): unknown {
  checkAnswer(json, most)
  return JSON.parse(json)
}

/** Characters that are measured in one step. */
const STEP = 256 * 1024

/** The same in steps; `read` is as `JSON.parse`, for pieces. */
export function* answerSteps(json: string, read: (json: string) => unknown): Generator<undefined, unknown> {
  const shape = new Shape(MAX_ANSWER_VALUES)
  for (let at = 0; at < json.length; at += STEP) {
    shape.add(json.slice(at, at + STEP))
    if (shape.excess !== undefined) throw excessive(shape)
    yield
  }
  return yield* parseSteps(json, read)
}

/** A list of an answer; nothing for whatever is none. Throws the failure of an answer whose list is too long. */
export function entriesIn(value: unknown, most = MAX_ENTRIES): readonly unknown[] {
  if (!Array.isArray(value)) return []
  if (value.length > most) throw tooMany(most, 'entries in one list')
  return value
}
