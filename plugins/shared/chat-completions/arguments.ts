/** The arguments of one tool call as they come, in pieces that may be cut anywhere. */
import {
  CALL_BOUNDS,
  type Count,
  excessive,
  isObject,
  MAX_CALL_CHARACTERS,
  Shape,
  tooLongCalls,
} from '../../../src/plugin.ts'

/**
 * Each piece is looked at once: to look at all of a text that grows costs the square of its length. Throws a
 * GatewayError for what passes the bounds of an answer.
 */
export class Arguments {
  /** Any text, as the input of a custom tool is: nothing of it is looked at. */
  readonly #free: boolean
  /** All that came so far. */
  text = ''
  /** They came as an object: nothing can follow. */
  #given = false
  /** The first character that is no space. */
  #opening: string | undefined
  readonly #shape: Shape
  #isObject: boolean | undefined

  /** `count`: of the values in all calls of the answer. */
  constructor(free: boolean, count: Count) {
    this.#free = free
    this.#shape = new Shape(CALL_BOUNDS, count)
  }

  /** They go out as they come, because they begin like an object or may be anything. */
  get direct(): boolean {
    return this.#free || this.#opening === '{'
  }

  /** True for a whole JSON object. */
  get isObject(): boolean {
    if (!this.direct || !this.#shape.closed || this.#shape.overrun) return false
    this.#isObject ??= holdsObject(this.text)
    return this.#isObject
  }

  /** True when nothing can follow. */
  get whole(): boolean {
    return this.#given || this.isObject
  }

  /** Adds `value` as a provider wrote it: a text, or an object at once; returns the text that was added. */
  add(value: unknown): string {
    if (this.#given) return ''
    if (typeof value === 'string') this.#push(value)
    else if (typeof value === 'object' && value !== null && this.text === '') {
      const piece = JSON.stringify(value)
      this.#push(piece)
      this.#given = true
      return piece
    } else return ''
    return value
  }

  #push(piece: string): void {
    this.text += piece
    if (this.text.length > MAX_CALL_CHARACTERS) throw tooLongCalls()
    if (this.#free) return
    this.#opening ??= piece.trimStart()[0]
    if (!this.direct) return
    this.#shape.add(piece)
    if (this.#shape.excess) throw excessive(this.#shape)
  }
}

function holdsObject(text: string): boolean {
  try {
    return isObject(JSON.parse(text))
  } catch {
    return false
  }
}
