/** Parses a body whose long strings are kept as they were written. */
import { textSteps } from '../core/frame-steps.ts'
import { type Body, RawStrings } from '../core/raw-strings.ts'
import { markOf, restored } from '../core/string-marks.ts'

const BACKSLASH = 0x5c
/** Bytes of the longest escape, `\u` and four digits, minus one. */
const ESCAPE = 5

/** The strings one by one and then the rest, so that others can go on in between. */
export class LongStrings {
  readonly #body: Buffer
  readonly #spans: readonly number[]
  readonly #piece: number
  readonly #rawStrings = new RawStrings()
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
   * Parses the next long string, or a piece of a very long one or of what stands before it; false when none is left.
   * Throws a SyntaxError for invalid JSON.
   */
  step(): boolean {
    if (this.#span === this.#spans.length) return false
    const body = this.#body
    const [from, to] = [this.#spans[this.#span]!, this.#spans[this.#span + 1]!]
    if (from - this.#at > this.#piece) {
      const end = characterEnd(body, this.#at + this.#piece)
      this.#before += body.toString('utf8', this.#at, end)
      this.#at = end
      return true
    }
    if (to - from <= this.#piece) this.#text = JSON.parse(body.toString('utf8', from, to)) as string
    else if (!this.#toEnd(to - 1)) return true
    this.#before += `${body.toString('utf8', this.#at, from)}"${markOf(this.#rawStrings.size)}"`
    this.#at = to
    this.#rawStrings.add(this.#text, body.subarray(from, to))
    this.#text = ''
    this.#within = undefined
    this.#span += 2
    return true
  }

  /** Parses a piece of a very long string, whose closing quote stands at `close`; true when it was the last one. */
  #toEnd(close: number): boolean {
    const body = this.#body
    const begin = this.#within ?? this.#spans[this.#span]! + 1
    const end = close - begin > this.#piece ? pieceEnd(body, begin, begin + this.#piece) : close
    // Quotes around a piece copy it once more; a shorter string is parsed with its own.
    this.#text += JSON.parse(`"${body.toString('utf8', begin, end)}"`) as string
    this.#within = end
    return end === close
  }

  /** The text of what is left to be parsed once there are no more steps, in steps of its own. */
  *rest(): Generator<undefined, string> {
    return this.#before + (yield* textSteps(this.#body.subarray(this.#at)))
  }

  /** All of the body; `value` is what that text says. */
  whole(value: unknown): Body {
    const rawStrings = this.#rawStrings
    if (rawStrings.size === 0) return { value }
    return { value: restored(value, index => rawStrings.textAt(index)), rawStrings }
  }
}

/** At `to`, or before the character that goes on there. */
function characterEnd(body: Buffer, to: number): number {
  let end = to
  while ((body[end]! & 0xc0) === 0x80) end--
  return end
}

/** Where a piece of a string may end: at `to`, or before the character or the escape that goes on there. */
function pieceEnd(body: Buffer, from: number, to: number): number {
  const end = characterEnd(body, to)
  for (let at = end - 1; at >= Math.max(from, end - ESCAPE); at--) {
    if (body[at] !== BACKSLASH) continue
    let first = at
    while (first > from && body[first - 1] === BACKSLASH) first--
    // Of an even number each escapes the next.
    return (at - first) % 2 === 0 ? at : end
  }
  return end
}
