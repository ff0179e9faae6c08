/** `JSON.parse` in steps, between which others may go on: a large text is parsed piece by piece, and put together. */
import type { Json } from './json.ts'
import { afterLongString, afterString, SCAN, stringSteps } from './json-strings.ts'
import { markOf, restored } from './string-marks.ts'

/** Characters of a piece; longer strings are parsed by themselves. */
const PIECE = 64 * 1024

const QUOTE = 0x22
const ZERO = 0x30
const NINE = 0x39
const COMMA = 0x2c
const COLON = 0x3a
const SPACE = 0x20
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Digits that a double always holds. */
const SAFE_DIGITS = 15
/** Digits in a row that are parsed in one step. */
const MAX_DIGITS = 1024 * 1024

/** As `JSON.parse`, for a piece; `hasLong`: there may be a whole number in it that a double does not hold. */
export type ReadPiece = (json: string, hasLong: boolean) => unknown

/** Bounds what a text holds; each string stands from its first quote to behind its last one. */
export interface ContentBounds {
  /** A list or an object begins. */
  open(): void
  /** So many entries of a list were parsed. */
  entries(count: number): void
  name(text: string, from: number, to: number): void
  /** A string that is longer than a piece. */
  long(text: string, from: number, to: number): void
}

/** A list or an object that has begun and not ended. */
interface Open {
  readonly isList: boolean
  /** Where its bracket stands. */
  readonly at: number
  /** What was parsed of it; undefined for what is still a part of the text around it. */
  value: unknown[] | Json | undefined
  /** Where its members begin that are not parsed yet. */
  from: number
  /** A member of it has just ended that was put together: a comma or its end must follow. */
  closed: boolean
  /** The name of its last member, with quotes. */
  nameFrom: number
  nameTo: number
}

/** `piece`: in characters. Throws a SyntaxError for what is no JSON, and whatever `bounds` throw. */
export function* parseSteps(
  text: string,
  read: ReadPiece,
  bounds?: ContentBounds,
  piece = PIECE,
): Generator<undefined, unknown> {
  const pieces = new Pieces(text, read, bounds)
  let cut = 0
  let at = 0
  let stringFrom = 0
  let stringTo = 0
  let digits = 0
  let rested = 0
  while (at < text.length) {
    if (at - rested >= SCAN) {
      rested = at
      yield
    }
    const code = text.charCodeAt(at)
    if (code >= ZERO && code <= NINE) {
      if (++digits > SAFE_DIGITS) pieces.hasLong = true
      if (digits > MAX_DIGITS) throw new SyntaxError('a number has too many digits')
      at++
      continue
    }
    digits = 0
    if (code === QUOTE) {
      stringFrom = at
      at = afterString(text, at + 1, at + piece)
      if (at < 0) at = yield* afterLongString(text, stringFrom + 1)
      stringTo = at
      if (at - stringFrom > piece) {
        bounds?.long(text, stringFrom, at)
        pieces.string(stringFrom, at, yield* stringSteps(text, stringFrom, at, piece))
      }
      continue
    }
    if (code === OPEN_LIST || code === OPEN_OBJECT) pieces.open(code === OPEN_LIST, at)
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) pieces.close(code === CLOSE_LIST, at)
    else if (code === COLON) pieces.name(stringFrom, stringTo)
    else if (code === COMMA) {
      const cuts = at - cut >= piece
      pieces.comma(at, cuts)
      if (cuts) {
        cut = rested = at
        yield
      }
    }
    at++
  }
  return pieces.end()
}

/** A string that was parsed by itself, and where it stands, with its quotes. */
interface LongString {
  readonly from: number
  readonly to: number
  readonly value: string
}

class Pieces {
  readonly #text: string
  /** In their order, from the first one that is in no piece yet. */
  #long: LongString[] = []
  readonly #parsePiece: ReadPiece
  readonly #bounds: ContentBounds | undefined
  readonly #open: Open[] = []
  #root: unknown[] | Json | undefined
  #rootEnd = 0
  /** A long number was seen: from there on any piece may hold one. */
  hasLong = false

  constructor(text: string, read: ReadPiece, bounds: ContentBounds | undefined) {
    this.#text = text
    this.#parsePiece = read
    this.#bounds = bounds
  }

  open(isList: boolean, at: number): void {
    if (this.#open.length === 0 && !isBlank(this.#text, this.#rootEnd, at))
      throw new SyntaxError('it has two beginnings')
    if (this.#root) throw new SyntaxError('it continues after its end')
    this.#bounds?.open()
    this.#open.push({ isList, at, value: undefined, from: at + 1, closed: false, nameFrom: 0, nameTo: 0 })
  }

  /** Until the next piece is parsed. */
  string(from: number, to: number, value: string): void {
    this.#long.push({ from, to, value })
  }

  name(from: number, to: number): void {
    // It stays where it stands: names are looked up.
    if (this.#long.at(-1)?.from === from) this.#long.pop()
    const top = this.#open.at(-1)
    if (!top) return
    top.nameFrom = from
    top.nameTo = to
    this.#bounds?.name(this.#text, from, to)
  }

  /** `cuts`: what came before is parsed now. */
  comma(at: number, cuts: boolean): void {
    const top = this.#open.at(-1)
    if (!top) throw new SyntaxError('a comma stands outside of every value')
    if (top.closed) {
      this.#mustBeBlank(top.from, at)
      top.closed = false
      top.from = at + 1
    } else if (cuts) {
      this.#begin()
      this.#parse(top, at)
      top.from = at + 1
    }
  }

  close(isList: boolean, at: number): void {
    const top = this.#open.pop()
    if (!top || top.isList !== isList) throw new SyntaxError('a bracket closes that did not open')
    if (!top.value) return
    if (top.closed) this.#mustBeBlank(top.from, at)
    else this.#parse(top, at)
    const parent = this.#open.at(-1)
    if (parent) {
      parent.from = at + 1
      parent.closed = true
    } else {
      this.#root = top.value
      this.#rootEnd = at + 1
    }
  }

  end(): unknown {
    if (this.#open.length > 0) throw new SyntaxError('the text ends too early')
    if (!this.#root) return this.#read('', 0, this.#text.length, '')
    this.#mustBeBlank(this.#rootEnd, this.#text.length)
    return this.#root
  }

  /** Gives all that is open a value, and parses what stands before the member in it that is open, too. */
  #begin(): void {
    for (const [i, open] of this.#open.entries()) {
      open.value ??= open.isList ? [] : {}
      const child = this.#open[i + 1]
      if (!child || child.value) continue
      child.value = child.isList ? [] : {}
      if (open.closed) throw new SyntaxError('a comma is missing')
      if (open.isList) {
        const items = this.#read('[', open.from, child.at, ' 0]') as unknown[]
        items.pop()
        extend(open.value, items)
        ;(open.value as unknown[]).push(child.value)
      } else {
        extend(open.value, this.#read('{', open.from, child.at, ' 0}'))
        set(open.value as Json, this.#read('', open.nameFrom, open.nameTo, '') as string, child.value)
      }
    }
  }

  /** Members of `open`, of which there must be one at least. */
  #parse(open: Open, to: number): void {
    if (isBlank(this.#text, open.from, to)) throw new SyntaxError('a member is missing')
    extend(open.value!, open.isList ? this.#read('[', open.from, to, ']') : this.#read('{', open.from, to, '}'))
    if (open.isList) this.#bounds?.entries((open.value as unknown[]).length)
  }

  /** The value of the text between these places, with `before` and `behind` around it. */
  #read(before: string, from: number, to: number, behind: string): unknown {
    let count = 0
    let json = before
    let at = from
    while (count < this.#long.length && this.#long[count]!.from < to) {
      const { from, to } = this.#long[count]!
      json += `${this.#text.slice(at, from)}"${markOf(count++)}"`
      at = to
    }
    const value = this.#parsePiece(json + this.#text.slice(at, to) + behind, this.hasLong)
    if (count === 0) return value
    const strings = this.#long
    this.#long = strings.slice(count)
    return restored(value, index => strings[index]?.value)
  }

  #mustBeBlank(from: number, to: number): void {
    if (!isBlank(this.#text, from, to)) throw new SyntaxError('a comma is missing')
  }
}

function extend(into: unknown[] | Json, more: unknown): void {
  if (Array.isArray(into)) for (const item of more as unknown[]) into.push(item)
  else for (const [name, value] of Object.entries(more as Json)) set(into, name, value)
}

/** Not always by assignment: a member may be called __proto__. */
function set(into: Json, name: string, value: unknown): void {
  if (name !== '__proto__') into[name] = value
  else Object.defineProperty(into, name, { value, writable: true, enumerable: true, configurable: true })
}

/** Whether the range holds nothing but JSON white space. */
function isBlank(text: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at)
    if (code !== SPACE && code !== 0x0a && code !== 0x0d && code !== 0x09) return false
  }
  return true
}

/** Behind the list, or the object, of a valid text that begins at this place. */
export function afterList(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = afterString(text, at + 1) - 1
    else if (code === OPEN_LIST || code === OPEN_OBJECT) depth++
    else if ((code === CLOSE_LIST || code === CLOSE_OBJECT) && --depth === 0) return at + 1
  }
  throw new SyntaxError('a list does not end')
}
