/** Parses a body whose long strings are kept as they were written. */
import { randomBytes } from 'node:crypto'
import { type Body, RawStrings } from '../core/raw-strings.ts'

/** Replaces a long string while the rest is parsed. Random, so that no body contains it, and of fixed length. */
const MARK = randomBytes(12).toString('base64url')
const DIGITS = 6
const markOf = (index: number): string => MARK + String(index).padStart(DIGITS, '0')
const MARK_LENGTH = markOf(0).length
const BACKSLASH = 0x5c
/** Bytes of the longest escape, `\u` and four digits, minus one. */
const ESCAPE = 5

/** The strings one by one and then the rest, so that others can go on in between. */
export class LongStrings {
  readonly #body: Buffer
  readonly #spans: readonly number[]
  readonly #piece: number
  readonly #verbatim = new RawStrings()
  /** The body with marks in place of what was parsed already. */
  #before = ''
  /** What stands before it has been parsed. */
  #at: number
  #span = 0
  /** What was parsed of the long string that is being parsed, and where the rest of it begins. */
  #text = ''
  #within: number | undefined

  /**
   * `spans`: where the long strings of `body` begin and end, in turn, with their quotes; `start`: where it begins;
   * `piece`: bytes of a string that one step parses, ten at least.
   */
  constructor(body: Buffer, spans: readonly number[], start: number, piece: number) {
    this.#body = body
    this.#spans = spans
    this.#piece = piece
    this.#at = start
  }

  /** How far it has come, in bytes. */
  get at(): number {
    return this.#within ?? this.#at
  }

  /**
   * Parses the next long string, or a piece of a very long one; false when none is left. Throws a SyntaxError for
   * invalid JSON.
   */
  step(): boolean {
    if (this.#span === this.#spans.length) return false
    const body = this.#body
    const [from, to] = [this.#spans[this.#span]!, this.#spans[this.#span + 1]!]
    const begin = this.#within ?? from + 1
    const end = to - 1 - begin > this.#piece ? pieceEnd(body, begin, begin + this.#piece) : to - 1
    this.#text += JSON.parse(`"${body.toString('utf8', begin, end)}"`) as string
    this.#within = end
    if (end < to - 1) return true
    this.#before += `${body.toString('utf8', this.#at, from)}"${markOf(this.#verbatim.size)}"`
    this.#at = to
    this.#verbatim.add(this.#text, body.subarray(from, to))
    this.#text = ''
    this.#within = undefined
    this.#span += 2
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

/** Where a piece of a string may end: at `to`, or before the character or the escape that goes on there. */
function pieceEnd(body: Buffer, from: number, to: number): number {
  let end = to
  while ((body[end]! & 0xc0) === 0x80) end--
  for (let at = end - 1; at >= Math.max(from, end - ESCAPE); at--) {
    if (body[at] !== BACKSLASH) continue
    let first = at
    while (first > from && body[first - 1] === BACKSLASH) first--
    // Of an even number each escapes the next.
    return (at - first) % 2 === 0 ? at : end
  }
  return end
}

const isMark = (text: string): boolean => text.length === MARK_LENGTH && text.startsWith(MARK)
