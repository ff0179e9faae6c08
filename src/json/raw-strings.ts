/**
 * Long strings of a request as its client wrote them. To write such a string as JSON takes V8 2 ns for each character,
 * more than all else that is done with a large request; its bytes are there, and mean the same.
 */
import { stringifyLossless } from './lossless.ts'

/** Shorter ones are not looked for. In characters. */
const MIN_RAW_CHARACTERS = 1024
/** Strings are nearly always written in the order in which they were read, so a search checks few. */
const MAX_LOOKS = 16

/** A body that was parsed, and the long strings in it; nothing where none were kept. */
export interface Body {
  readonly value: unknown
  readonly rawStrings?: RawStrings | undefined
  /** How many values it holds, where they were counted. */
  readonly values?: number
  /** Its size, where it is JSON. */
  readonly bytes?: number
  /** Frees what is held of the body beside `value`; present where that is much. */
  readonly release?: () => void
}

/** Strings that are written to the provider byte for byte as the client wrote them. */
export class RawStrings {
  readonly #texts: string[] = []
  readonly #written: Buffer[] = []

  /** `written` is `text` as a JSON string in UTF-8, with its quotes. */
  add(text: string, written: Buffer): void {
    this.#texts.push(text)
    this.#written.push(written)
  }

  get size(): number {
    return this.#texts.length
  }

  /** The text that was added after `index` others. */
  textAt(index: number): string | undefined {
    return this.#texts[index]
  }

  /** Where the text stands among those that were added, looked for from `from` on; -1 where it is not found. */
  indexOf(text: string, from: number): number {
    const { length } = this.#texts
    for (let look = 0; look < Math.min(length, MAX_LOOKS); look++) {
      const at = (from + look) % length
      if (this.#texts[at] === text) return at
    }
    return -1
  }

  /** The text at that index, as a JSON string in UTF-8 with its quotes. */
  bytesAt(index: number): Buffer {
    return this.#written[index]!
  }

  /** A value that is made of plain objects, as JSON that means what `JSON.stringify` would say. */
  stringify(value: unknown): string | Buffer {
    const holders = new Set<object>()
    if (!find(value, holders)) return stringifyLossless(JSON.stringify(value))
    const out = new Writing(holders, this)
    out.value(value)
    return out.joined()
  }
}

/** Adds all objects that hold a long string, however deep, to `holders`. Returns whether there is one in `value`. */
function find(value: unknown, holders: Set<object>): boolean {
  if (typeof value === 'string') return value.length >= MIN_RAW_CHARACTERS
  if (typeof value !== 'object' || value === null) return false
  let found = false
  if (Array.isArray(value)) for (const item of value) found = find(item, holders) || found
  else for (const key in value) found = find((value as Record<string, unknown>)[key], holders) || found
  if (found) holders.add(value)
  return found
}

/** One value on its way to bytes: pieces of text, and of what a client wrote. */
class Writing {
  readonly #holders: ReadonlySet<object>
  readonly #raw: RawStrings
  readonly #pieces: Buffer[] = []
  /** Text behind the last piece. */
  #text = ''
  /** Behind the string that was found last. */
  #next = 0

  constructor(holders: ReadonlySet<object>, raw: RawStrings) {
    this.#holders = holders
    this.#raw = raw
  }

  value(value: unknown): void {
    if (typeof value === 'string' && value.length >= MIN_RAW_CHARACTERS) this.#string(value)
    else if (typeof value !== 'object' || value === null || !this.#holders.has(value)) {
      this.#text += JSON.stringify(value) ?? 'null'
    } else if (Array.isArray(value)) this.#array(value)
    else this.#object(value)
  }

  joined(): string | Buffer {
    const text = stringifyLossless(this.#text)
    if (this.#pieces.length === 0) return text
    this.#pieces.push(Buffer.from(text))
    return Buffer.concat(this.#pieces)
  }

  #array(items: readonly unknown[]): void {
    let before = '['
    for (const item of items) {
      this.#text += before
      before = ','
      this.value(item)
    }
    this.#text += ']'
  }

  #object(members: object): void {
    let before = '{'
    for (const [name, member] of Object.entries(members)) {
      if (member === undefined) continue
      this.#text += `${before}${JSON.stringify(name)}:`
      before = ','
      this.value(member)
    }
    this.#text += '}'
  }

  #string(text: string): void {
    const at = this.#raw.indexOf(text, this.#next)
    if (at < 0) {
      this.#text += JSON.stringify(text)
      return
    }
    this.#next = at + 1
    this.#pieces.push(Buffer.from(stringifyLossless(this.#text)), this.#raw.bytesAt(at))
    this.#text = ''
  }
}
