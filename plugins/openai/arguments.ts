/** The arguments of one tool call as they come, in pieces that may be cut anywhere. */
import { errors, isObject } from '../../src/plugin.ts'

const MAX_CHARACTERS = 32 * 1024 * 1024

/**
 * Each piece is looked at once: to look at all of a text that grows costs the square of its length. Throws a
 * GatewayError for more than 32 Mi characters.
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
  #depth = 0
  #quoted = false
  #escaped = false
  /** The bracket that opened them has closed. */
  #closed = false
  /** Something follows behind that. */
  #overrun = false
  #isObject: boolean | undefined

  constructor(free = false) {
    this.#free = free
  }

  /** They go out as they come, because they begin like an object or may be anything. */
  get direct(): boolean {
    return this.#free || this.#opening === '{'
  }

  /** True for a whole JSON object. */
  get isObject(): boolean {
    if (!this.direct || !this.#closed || this.#overrun) return false
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
    if (this.text.length > MAX_CHARACTERS) {
      throw errors.invalidAnswer('the arguments of a tool call are larger than 32 MiB')
    }
    if (this.#free) return
    this.#opening ??= piece.trimStart()[0]
    if (this.direct) for (let at = 0; at < piece.length; at++) this.#look(piece[at]!)
  }

  #look(char: string): void {
    if (this.#closed) {
      if (char.trim() !== '') this.#overrun = true
    } else if (this.#quoted) {
      if (this.#escaped) this.#escaped = false
      else if (char === '\\') this.#escaped = true
      else if (char === '"') this.#quoted = false
    } else if (char === '"') this.#quoted = true
    else if (char === '{' || char === '[') this.#depth++
    else if ((char === '}' || char === ']') && --this.#depth === 0) this.#closed = true
  }
}

function holdsObject(text: string): boolean {
  try {
    return isObject(JSON.parse(text))
  } catch {
    return false
  }
}
