/** Parses a body whose long strings are kept as they were written. */
import { randomBytes } from 'node:crypto'
import { type Body, Verbatim } from '../core/verbatim.ts'

/** Stands for a long string while the rest is parsed. Nobody else can write it, and all are equally long. */
const MARK = randomBytes(12).toString('base64url')
const DIGITS = 6
const markOf = (index: number): string => MARK + String(index).padStart(DIGITS, '0')
const MARK_LENGTH = markOf(0).length

/** The strings one by one and then the rest, so that others can go on in between. */
export class LongStrings {
  readonly #body: Buffer
  readonly #spans: readonly number[]
  readonly #verbatim = new Verbatim()
  /** The body with marks in place of what was parsed already. */
  #before = ''
  /** What stands before it has been parsed. */
  #at: number
  #span = 0

  /** `spans`: where the long strings of `body` begin and end, in turn, with their quotes; `start`: where it begins. */
  constructor(body: Buffer, spans: readonly number[], start: number) {
    this.#body = body
    this.#spans = spans
    this.#at = start
  }

  /** How far it has come, in bytes. */
  get at(): number {
    return this.#at
  }

  /** Parses the next long string; false when there is none. Throws a SyntaxError where the body is not JSON. */
  step(): boolean {
    if (this.#span === this.#spans.length) return false
    const [from, to] = [this.#spans[this.#span++]!, this.#spans[this.#span++]!]
    const written = this.#body.subarray(from, to)
    const text = JSON.parse(written.toString()) as string
    this.#before += `${this.#body.toString('utf8', this.#at, from)}"${markOf(this.#verbatim.size)}"`
    this.#at = to
    this.#verbatim.add(text, written)
    return true
  }

  /** The text of what is left to be parsed once there are no more steps. */
  rest(): string {
    return this.#before + this.#body.toString('utf8', this.#at)
  }

  /** All of the body; `read` is as `JSON.parse`. Throws a SyntaxError where it is not JSON. */
  whole(rest: string, read: (json: string) => unknown): Body {
    const value = read(rest)
    return this.#verbatim.size === 0 ? { value } : { value: this.#restored(value), verbatim: this.#verbatim }
  }

  /** The value with texts in place of marks. */
  #restored(value: unknown): unknown {
    if (typeof value === 'string')
      return isMark(value) ? this.#verbatim.textAt(Number(value.slice(MARK.length))) : value
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) for (let at = 0; at < value.length; at++) value[at] = this.#restored(value[at])
    else {
      const members = value as Record<string, unknown>
      for (const name in members) members[name] = this.#restored(members[name])
    }
    return value
  }
}

const isMark = (text: string): boolean => text.length === MARK_LENGTH && text.startsWith(MARK)
