/**
 * Arguments and results of tools that a body holds as JSON and a chat request as text. They are written in one step, so
 * what all of them have together is bounded.
 */
import { MAX_CALL_CHARACTERS } from '../json/answer-bounds.ts'
import { stringifyLossless } from '../json/lossless.ts'
import { weigh } from '../json/size.ts'
import { errors } from '../lib/error.ts'

/** Maximum characters of results that are JSON. Results that are text may be as long as the body. */
const MAX_RESULT_CHARACTERS = 8 * 1024 * 1024

/** Counts the JSON in tool arguments and results of one request. */
export class ToolJson {
  #arguments = 0
  #results = 0

  /** The text of what a call has. Throws a 400 that names `at` for more than all calls may have. */
  argumentsOf(value: unknown, at: string): string {
    const text = textWithin(value, MAX_CALL_CHARACTERS - this.#arguments)
    if (text === undefined) throw tooMuch('the arguments of all calls', MAX_CALL_CHARACTERS, at)
    this.#arguments += text.length
    return text
  }

  /** Returns the text of a result within its bound. */
  resultOf(value: unknown, at: string): string {
    const text = textWithin(value, MAX_RESULT_CHARACTERS - this.#results)
    if (text === undefined) throw tooMuch('all results of tools that are JSON', MAX_RESULT_CHARACTERS, at)
    this.#results += text.length
    return text
  }
}

/** Undefined for more than `most` characters: what texts and names alone show is not written. */
function textWithin(value: unknown, most: number): string | undefined {
  if (weigh(value, 0) > most) return undefined
  const text = stringifyLossless(JSON.stringify(value))
  return text.length > most ? undefined : text
}

const tooMuch = (what: string, most: number, at: string) =>
  errors.invalidField(at, `${what} may have at most ${most} characters in total`)
