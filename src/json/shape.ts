/** Bounds the shape of JSON text before it is parsed: `JSON.parse` has no limit of levels or of values. */
import { ENTRY_BYTES, NAME_BYTES, OBJECT_BYTES } from './structure.ts'

/** Maximum nesting of anything parsed: bodies, JSON text in them, and answers. */
export const MAX_LEVELS = 128
/** Maximum values of a body with its JSON texts, unless an endpoint names its own number. */
export const MAX_VALUES = 40_000
/** Names of members: objects with many names that differ cost the parser most. */
export const MAX_NAMES = 20_000

/**
 * Characters of the name of a member, in anything that is parsed. V8 tells longer ones apart by their length alone, so
 * that each is compared with all of its length: a thousand take a second.
 */
export const MAX_NAME_CHARACTERS = 16_383

/** Bounds of a JSON text. A name is that of an object's member. */
export interface Bounds {
  readonly values: number
  /** Any number where it is left out. */
  readonly names?: number
  /** Characters of one name; `MAX_NAME_CHARACTERS` where it is left out. */
  readonly nameLength?: number
}
/** Bounds of tool arguments, all calls together. */
export const CALL_BOUNDS: Bounds = { values: MAX_VALUES, names: MAX_NAMES }

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const SPACE = 0x20
const BACKSLASH = 0x5c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
/** Characters of a string that are read one by one: a native search costs as much as this many. */
const MAX_LOOP_CHARACTERS = 24

/** Which bound a text exceeds. */
type Excess = 'levels' | 'values' | 'names' | 'nameLength'

/** Counts several texts together. */
export class Count {
  values: number
  names = 0
  /** Lists and objects. */
  lists = 0
  readonly #first: number

  constructor(values = 0) {
    this.values = values
    this.#first = values
  }

  /** Values of the texts alone. */
  get own(): number {
    return this.values - this.#first
  }

  /** Bytes of what the texts are parsed to, beside their own texts. */
  get structure(): number {
    return this.lists * OBJECT_BYTES + this.names * NAME_BYTES + Math.max(0, this.own - this.lists) * ENTRY_BYTES
  }
}

/** Scans a JSON text, possibly in pieces, each once. Leaves syntax to the parser. */
export class Shape {
  readonly bounds: Bounds
  readonly #count: Count
  #depth: number
  #begun = false
  #quoted = false
  #escaped = false
  /** Characters of the last string, with its closing quote. */
  #length = 0
  #overrun = false
  #excess: Excess | undefined

  /** Adds the text to `count`; the text stands `level` levels deep. */
  constructor(bounds: Bounds, count = new Count(), level = 0) {
    this.bounds = bounds
    this.#count = count
    this.#depth = level
    count.values++
  }

  /** The first bound that was exceeded; scanning stops there. */
  get excess(): Excess | undefined {
    return this.#excess
  }

  /** Every bracket has closed that opened, of one at least. */
  get closed(): boolean {
    return this.#begun && this.#depth === 0
  }

  /** Something other than spaces stands behind the bracket that closed all. */
  get overrun(): boolean {
    return this.#overrun
  }

  add(piece: string): void {
    if (this.#excess !== undefined) return
    const { length } = piece
    let depth = this.#depth
    const {
      values: most,
      names: mostNames = Number.POSITIVE_INFINITY,
      nameLength: longest = MAX_NAME_CHARACTERS,
    } = this.bounds
    let { values, names, lists } = this.#count
    let at = this.#quoted ? this.#afterString(piece, 0) : 0
    while (at < length) {
      const code = piece.charCodeAt(at++)
      if (depth === 0 && this.#begun && code > SPACE) this.#overrun = true
      if (code === QUOTE) {
        this.#length = 0
        at = this.#afterString(piece, at)
      } else if (code === COMMA) values++
      else if (code === COLON) {
        names++
        if (this.#length > longest + 1) this.#excess = 'nameLength'
      } else if (code === OPEN_OBJECT || code === OPEN_LIST) {
        this.#begun = true
        values++
        lists++
        if (++depth > MAX_LEVELS) this.#excess = 'levels'
      } else if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth--
      else continue
      if (values > most) this.#excess ??= 'values'
      else if (names > mostNames) this.#excess ??= 'names'
      if (this.#excess !== undefined) break
    }
    this.#depth = depth
    this.#count.values = values
    this.#count.names = names
    this.#count.lists = lists
  }

  #afterString(piece: string, from: number): number {
    const end = this.#endOfString(piece, from)
    this.#length += end - from
    return end
  }

  /** Behind the string that goes on at this place; the end of the piece where it does not end. */
  #endOfString(piece: string, from: number): number {
    const { length } = piece
    this.#quoted = true
    let near = from + MAX_LOOP_CHARACTERS
    for (let at = from; at < length; at++) {
      if (this.#escaped) {
        this.#escaped = false
        continue
      }
      if (at > near) {
        // A long value is likely followed by more.
        const quote = piece.indexOf('"', at)
        const end = quote < 0 ? length : quote
        let backslashes = 0
        while (end - 1 - backslashes >= at && piece.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++
        if (backslashes % 2 === 1) this.#escaped = true
        if (quote < 0) return length
        at = quote
        near = quote + MAX_LOOP_CHARACTERS
        if (!this.#escaped) {
          this.#quoted = false
          return quote + 1
        }
        this.#escaped = false
        continue
      }
      const code = piece.charCodeAt(at)
      if (code === BACKSLASH) this.#escaped = true
      else if (code === QUOTE) {
        this.#quoted = false
        return at + 1
      }
    }
    return length
  }
}
