/** Tool calls of one answer: how many it may hold, and ids that are made of others. */

import { createHash } from 'node:crypto'
import { Count, MAX_CALL_CHARACTERS, MAX_CALLS, tooLongCalls, tooManyCalls } from '../../src/plugin.ts'

/** Counts the calls of all choices and the values in them. */
export class CallCount extends Count {
  #calls = 0
  #characters = 0

  /** Counts a call, with a name or without one. Throws the failure of an answer with too many. */
  begin(): void {
    if (++this.#calls > MAX_CALLS) throw tooManyCalls()
  }

  /** Counts arguments that are written in this step. Throws the failure of an answer where they are too long. */
  wrote(args: string): void {
    this.#characters += args.length
    if (this.#characters > MAX_CALL_CHARACTERS) throw tooLongCalls()
  }
}

/** Length of generated ids, in characters. */
const ID_CHARACTERS = 24
/** Characters of the provider's id that are read: others than letters and digits are left out. */
const READ_CHARACTERS = 64

/** The last letters and digits of a provider's id, for ids that are made of it. */
export const idSuffix = (id: string): string =>
  id
    .slice(-READ_CHARACTERS)
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(-ID_CHARACTERS)

/** The id of a tool call in the place of one that a wire does not take. Equal texts give equal ids. */
export const hashedCallId = (text: string): string =>
  `call_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
