/** The arguments of one tool call, in pieces cut anywhere. */
import {
  CALL_BOUNDS,
  type Count,
  excessiveArguments,
  isObject,
  jsonIn,
  MAX_CALL_CHARACTERS,
  Shape,
  tooLongCalls,
} from '../../../src/plugin.ts'

/**
 * Scans each piece once: rescanning a growing text would be quadratic. Throws a GatewayError beyond the limits of an
 * answer.
 */
export class Arguments {
  /** Free text, as the input of a custom tool: not inspected. */
  readonly #free: boolean
  /** Everything received so far. */
  text = ''
  /** Received as an object: nothing can follow. */
  #given = false
  /** The first non-space character. */
  #opening: string | undefined
  readonly #shape: Shape
  #isObject: boolean | undefined

  /** `count`: counts the values in all calls of the answer. */
  constructor(free: boolean, count: Count) {
    this.#free = free
    this.#shape = new Shape(CALL_BOUNDS, count)
  }

  /** Whether pieces are emitted at once: they begin like an object, or are free text. */
  get direct(): boolean {
    return this.#free || this.#opening === '{'
  }

  /** True for a whole JSON object. */
  get isObject(): boolean {
    if (!this.direct || !this.#shape.closed || this.#shape.overrun) return false
    this.#isObject ??= isObject(jsonIn(this.text))
    return this.#isObject
  }

  /** True when nothing can follow. */
  get whole(): boolean {
    return this.#given || this.isObject
  }

  /** Adds `value` in the provider's form, a string or an object; returns the added text. */
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
    if (this.#shape.excess) throw excessiveArguments(this.#shape)
  }
}
