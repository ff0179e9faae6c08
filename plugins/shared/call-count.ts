/** Tool calls of one answer, which one frame may hold all of: the gateway counts its events once it is decoded. */
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
