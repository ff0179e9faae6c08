/** JSON in one form, whatever order its members have, for an HMAC: seals that clients hold depend on each byte of it. */
import { Buffer } from 'node:buffer'
import { isWellFormed, type Json } from './json.ts'

/** Takes the bytes of a text, a part at a time. The bytes hold only until it returns. */
interface ByteSink {
  update(part: Uint8Array | string): unknown
}

/** Remaining budget for writing all texts of a request. */
export class WorkBudget {
  values: number
  characters: number

  constructor(values: number, characters: number) {
    this.values = values
    this.characters = characters
  }

  /** Takes the work of writing the members of an object or a list; false, and takes nothing, where there is less. */
  takesValues(members: number): boolean {
    if (members > this.values) return false
    this.values -= members
    return true
  }

  /** Takes characters from the budget; false when too few are left. */
  takesCharacters(characters: number): boolean {
    if (characters > this.characters) return false
    this.characters -= characters
    return true
  }
}

const MAX_DEPTH = 128
/** To sort more names than these takes longer than to write them. */
const MAX_FREE_NAMES = 256
/** Characters of a string that are looked at one by one: longer ones are searched and written by native code. */
const MAX_LOOP_CHARACTERS = 64
/** Characters of a longer one that are written at a time. */
const PIECE_CHARACTERS = 8 * 1024
/** Buffer for all writing here, which is synchronous. A piece takes up to six bytes per character. */
const BYTES = Buffer.allocUnsafeSlow(64 * 1024)
const UNUSUAL = /[^ !#-[\]-~]/
/** Each byte of a text that is not plain ASCII takes so many times as long. */
const NON_ASCII_WORK = 2
/** Maximum bytes per character in a text with lone surrogates, each of which is escaped. */
const SURROGATE_WORK = 8
/** Bytes of a character that is not escaped. */
const MAX_CHARACTER_BYTES = 3

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN = 0x5b
const CLOSE = 0x5d
const END = 0x7d
/** Objects have one member, a list of names with values: no list of a client's is taken for an object. */
const MEMBERS = '{"members":['

const NONE: readonly string[] = []

/**
 * Writes `value`, without the members of it that are named `without`. False where it nests too deep or is more work than
 * is left; a part of it may have been written then.
 */
export function writeCanonical(value: Readonly<Json>, into: ByteSink, work: WorkBudget, without = NONE): boolean {
  const writer = new Writer(into, work)
  return writer.object(value, 0, without) && writer.flush()
}

class Writer {
  readonly #into: ByteSink
  readonly #work: WorkBudget
  #at = 0

  constructor(into: ByteSink, work: WorkBudget) {
    this.#into = into
    this.#work = work
  }

  flush(): true {
    if (this.#at > 0) this.#into.update(BYTES.subarray(0, this.#at))
    this.#at = 0
    return true
  }

  object(value: Readonly<Json>, depth: number, without = NONE): boolean {
    const names = Object.keys(value)
    if (!this.#work.takesValues(names.length)) return false
    if (!isOrdered(names)) {
      if (names.length > MAX_FREE_NAMES && !this.#work.takesValues(names.length)) return false
      names.sort()
    }
    this.#ascii(MEMBERS)
    let isFirst = true
    for (let index = 0; index < names.length; index++) {
      const name = names[index]!
      const member = value[name]
      if (member === undefined || without.includes(name)) continue
      if (!isFirst) this.#byte(COMMA)
      isFirst = false
      this.#byte(OPEN)
      if (!this.#string(name)) return false
      this.#byte(COMMA)
      if (!this.#value(member, depth + 1)) return false
      this.#byte(CLOSE)
    }
    this.#byte(CLOSE)
    this.#byte(END)
    return true
  }

  #value(value: unknown, depth: number): boolean {
    if (depth > MAX_DEPTH) return false
    switch (typeof value) {
      case 'string':
        return this.#string(value)
      case 'number':
        this.#ascii(Number.isFinite(value) ? `${value}` : 'null')
        return true
      case 'object':
        if (Array.isArray(value)) return this.#list(value, depth)
        if (value !== null) return this.object(value as Json, depth)
        this.#ascii('null')
        return true
      case 'boolean':
        this.#ascii(value ? 'true' : 'false')
        return true
      default:
        // No JSON: what `JSON.stringify` makes of it in a list.
        this.#ascii(JSON.stringify(value) ?? 'null')
        return true
    }
  }

  #list(list: readonly unknown[], depth: number): boolean {
    const { length } = list
    if (!this.#work.takesValues(length)) return false
    this.#byte(OPEN)
    for (let index = 0; index < length; index++) {
      if (index > 0) this.#byte(COMMA)
      if (!this.#value(list[index], depth + 1)) return false
    }
    this.#byte(CLOSE)
    return true
  }

  #string(text: string): boolean {
    const { length } = text
    if (length > this.#work.characters) return false
    if (length <= MAX_LOOP_CHARACTERS && this.#short(text)) return this.#work.takesCharacters(length)
    const isPlain = length > MAX_LOOP_CHARACTERS && !UNUSUAL.test(text)
    if (isPlain && !this.#work.takesCharacters(length)) return false
    if (!isPlain && length <= PIECE_CHARACTERS) return this.#takes(this.#write(JSON.stringify(text), 'utf8') - 2, text)
    this.#byte(QUOTE)
    for (let at = 0; at < length; ) {
      const end = pieceEnd(text, at + PIECE_CHARACTERS)
      const piece = text.slice(at, end)
      if (isPlain) this.#write(piece, 'latin1')
      else if (!this.#takes(this.#write(JSON.stringify(piece).slice(1, -1), 'utf8'), piece)) return false
      at = end
    }
    this.#byte(QUOTE)
    return true
  }

  /** Takes the work of the bytes that `text` was written as. */
  #takes(bytes: number, text: string): boolean {
    return this.#work.takesCharacters(bytes * (isWellFormed(text) ? NON_ASCII_WORK : SURROGATE_WORK))
  }

  /** Writes a piece, and returns its bytes. */
  #write(text: string, encoding: 'latin1' | 'utf8'): number {
    if (this.#at + text.length * MAX_CHARACTER_BYTES > BYTES.length) this.flush()
    const bytes = BYTES.write(text, this.#at, encoding)
    this.#at += bytes
    return bytes
  }

  /** Writes a short text; false, and writes nothing, where that has other characters than plain ones. */
  #short(text: string): boolean {
    const { length } = text
    if (this.#at + length + 2 > BYTES.length) this.flush()
    let at = this.#at
    BYTES[at++] = QUOTE
    for (let index = 0; index < length; index++) {
      const code = text.charCodeAt(index)
      if (code < 0x20 || code > 0x7e || code === QUOTE || code === BACKSLASH) return false
      BYTES[at++] = code
    }
    BYTES[at++] = QUOTE
    this.#at = at
    return true
  }

  #ascii(text: string): void {
    const { length } = text
    if (this.#at + length > BYTES.length) this.flush()
    let at = this.#at
    for (let index = 0; index < length; index++) BYTES[at++] = text.charCodeAt(index)
    this.#at = at
  }

  #byte(code: number): void {
    if (this.#at === BYTES.length) this.flush()
    BYTES[this.#at++] = code
  }
}

/** At `to`, or before the character that goes on there. */
function pieceEnd(text: string, to: number): number {
  if (to >= text.length) return text.length
  return (text.charCodeAt(to - 1) & 0xfc00) === HIGH_SURROGATE ? to - 1 : to
}
/** The first half of a pair. */
const HIGH_SURROGATE = 0xd800

/** Tells whether the names are sorted by UTF-16 units, as `sort` orders them. */
function isOrdered(names: readonly string[]): boolean {
  for (let index = 1; index < names.length; index++) if (names[index - 1]! > names[index]!) return false
  return true
}
