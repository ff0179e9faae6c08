/**
 * Bounds the shape of a JSON body before it is parsed, since `JSON.parse` limits neither depth nor values. Also records
 * long strings, and possible keys that reach a prototype, so that the parsed value need not be searched for them.
 */

import { MAX_LEVELS, MAX_NAME_CHARACTERS, MAX_NAMES, MAX_VALUES } from '../json/shape.ts'
import { ENTRY_BYTES, NAME_BYTES, OBJECT_BYTES } from '../json/structure.ts'
import { errors } from '../lib/error.ts'

/** Bytes from which a string counts as long. */
const MIN_LONG_BYTES = 4096
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const UNDERSCORE = 0x5f
const LOWER_C = 0x63
const PROTO = Buffer.from('__proto__')
const CONSTRUCTOR = Buffer.from('constructor')
/** Length of the longer name with every letter escaped (`\u0063`). */
const MAX_SPELLED_BYTES = CONSTRUCTOR.length * 6

/** The name of a member, in bytes as they were written. */
const NAME = /"((?:[^"\\]|\\.)*)"\s*:/gs

/** Throws a 400 for a body that nests too deep or holds too many values or names; leaves syntax to the parser. */
export class ShapeScan {
  readonly #body: Buffer
  readonly #most: number
  #at = 0
  #inString = false
  #stringAt = 0
  #suspicious = false
  readonly #long: number[] = []
  #depth = 0
  #values = 1
  #opened = 0
  #names = 0

  /** `most`: of values. */
  constructor(body: Buffer, most = MAX_VALUES) {
    this.#body = body
    this.#most = most
  }

  /** Whether `__proto__` or `constructor` may be among the strings, however they are spelled. */
  get suspicious(): boolean {
    return this.#suspicious
  }

  /** Values so far. */
  get values(): number {
    return this.#values
  }

  /** Bytes of what the body is parsed to, beside its texts. */
  get structure(): number {
    return this.#opened * OBJECT_BYTES + this.#names * NAME_BYTES + (this.#values - this.#opened) * ENTRY_BYTES
  }

  /** Where the long strings that are no names begin and end, in turn, with their quotes. */
  get long(): readonly number[] {
    return this.#long
  }

  run(): void {
    const body = this.#body
    while (this.#at < body.length) {
      if (this.#inString) this.#toQuote()
      else this.#note(body[this.#at++]!)
    }
    if (this.#names > MAX_NAMES) this.#checkNames()
  }

  /** Names that differ cost an object much more than names that repeat, as those of messages do. */
  #checkNames(): void {
    const names = new Set<string>()
    for (const [, name] of this.#body.toString('latin1').matchAll(NAME)) {
      if (names.add(name!).size > MAX_NAMES) throw errors.tooManyNames(MAX_NAMES)
    }
  }

  #note(byte: number): void {
    switch (byte) {
      case QUOTE:
        this.#inString = true
        this.#stringAt = this.#at
        break
      case 0x7b: // {
      case 0x5b: // [
        if (++this.#depth > MAX_LEVELS) throw errors.tooDeep(MAX_LEVELS)
        this.#opened++
        if (++this.#values > this.#most) throw errors.tooManyElements(this.#most)
        break
      case COLON:
        this.#names++
        // The string before the colon was a name. Names are looked up, and stay as they are.
        if (this.#long.at(-2) !== this.#stringAt - 1) break
        if (this.#long.at(-1)! - this.#stringAt > MAX_NAME_CHARACTERS + 1) throw errors.nameTooLong(MAX_NAME_CHARACTERS)
        this.#long.length -= 2
        break
      case 0x7d: // }
      case 0x5d: // ]
        this.#depth--
        break
      case 0x2c: // ,
        if (++this.#values > this.#most) throw errors.tooManyElements(this.#most)
        break
    }
  }

  /** To behind the next quote, found natively: strings are the bulk of a prompt. */
  #toQuote(): void {
    const close = this.#body.indexOf(QUOTE, this.#at)
    if (close < 0) {
      this.#at = this.#body.length
      return
    }
    let backslashes = 0
    while (this.#body[close - 1 - backslashes] === BACKSLASH) backslashes++
    this.#inString = backslashes % 2 === 1
    this.#at = close + 1
    if (this.#inString) return
    this.#suspicious ||= isSuspicious(this.#body, this.#stringAt, close)
    if (close - this.#stringAt >= MIN_LONG_BYTES) this.#long.push(this.#stringAt - 1, close + 1)
  }
}

function isSuspicious(body: Buffer, from: number, to: number): boolean {
  const first = body[from]
  if (first !== UNDERSCORE && first !== LOWER_C && first !== BACKSLASH) return false
  if (to - from > MAX_SPELLED_BYTES) return false
  const spelled = body.subarray(from, to)
  return spelled.includes(BACKSLASH) || spelled.equals(PROTO) || spelled.equals(CONSTRUCTOR)
}
