/** `JSON.stringify` in steps, between which others may go on: what is large is written piece by piece. */
import { createHash, type Hash } from 'node:crypto'
import { Upload } from './body.ts'
import { isLongNumber, stringifyLossless } from './lossless-json.ts'
import { LONG, type RawStrings } from './raw-strings.ts'

/** Characters of a piece; what is smaller is written at once. */
const PIECE = 128 * 1024
/** What a value takes beside its strings, about. */
const VALUE = 8

/** Yields wherever others may go on; returns all bytes, in pieces. */
export type ByteSteps = Generator<undefined, Buffer[]>

/** About how many characters a value of plain objects has as JSON, where each has `each`. Allocates nothing. */
export function weigh(value: unknown, each = VALUE): number {
  if (typeof value === 'string') return value.length + each
  if (typeof value !== 'object' || value === null) return each
  let sum = each
  if (Array.isArray(value)) for (let at = 0; at < value.length; at++) sum += weigh(value[at], each)
  else for (const name in value) sum += name.length + weigh((value as Record<string, unknown>)[name], each)
  return sum
}

/** Whether a value is not written at once. */
const isLarge = (value: unknown): boolean => exceeds(value, PIECE)

/** Whether a value takes more than so many characters, each with `each` beside its own. Looks no further than it must. */
export const exceeds = (value: unknown, characters: number, each = VALUE): boolean => left(value, characters, each) <= 0

/** What is left of so many characters behind the value, about; nothing, or less, as soon as they are too few. */
function left(value: unknown, characters: number, each: number): number {
  let rest = characters - each
  if (typeof value === 'string') return rest - value.length
  // Its hash stands for a file.
  if (typeof value !== 'object' || value === null || value instanceof Upload) return rest
  if (ArrayBuffer.isView(value)) return rest - value.byteLength
  if (Array.isArray(value)) for (let at = 0; at < value.length && rest > 0; at++) rest = left(value[at], rest, each)
  else
    for (const name in value) {
      if (rest <= 0) break
      rest = left((value as Record<string, unknown>)[name], rest - name.length, each)
    }
  return rest
}

/** JSON text of a value of plain objects, with numbers in place of their marks: at once, or in steps where it is large. */
export const stringifyInSteps = (value: object): string | ByteSteps =>
  isLarge(value) ? stringifySteps(value) : stringifyLossless(JSON.stringify(value))

/** The same in steps. `raw` are long strings that need not be written again. */
export function* stringifySteps(value: object, raw?: RawStrings): ByteSteps {
  const pieces: Buffer[] = []
  yield* new Output(pieces, raw).all(value)
  return pieces
}

/** SHA-256 of that text: at once, or in steps where the value is large. Files in it must have been hashed. */
export function hashInSteps(value: object): Hash | Generator<undefined, Hash> {
  const hash = createHash('sha256')
  return isLarge(value) ? hashSteps(value, hash) : hash.update(stringifyLossless(JSON.stringify(value)))
}

function* hashSteps(value: object, hash: Hash): Generator<undefined, Hash> {
  yield* new Output({ push: piece => hash.update(piece) }).all(value)
  return hash
}

/** JSON text of a list whose items are made one by one, since all of them together may take much memory. */
export function* listSteps<T>(items: readonly T[], made: (item: T, index: number) => object): ByteSteps {
  const pieces: Buffer[] = []
  let text = '['
  for (const [index, item] of items.entries()) {
    if (index > 0) text += ','
    const written = stringifyInSteps(made(item, index))
    if (typeof written === 'string') text += written
    else {
      pieces.push(Buffer.from(text), ...(yield* written))
      text = ''
    }
    if (text.length < PIECE) continue
    pieces.push(Buffer.from(text))
    text = ''
    yield
  }
  pieces.push(Buffer.from(`${text}]`))
  return pieces
}

/** Takes what is written, piece by piece. */
interface Pieces {
  push(piece: Buffer): unknown
}

/** Adds a text to `pieces`, as what stands between the quotes of a JSON string. */
export function* writeString(text: string, pieces: Pieces): Generator<undefined, void> {
  for (let at = 0; at < text.length; ) {
    const end = pieceEnd(text, at + PIECE)
    pieces.push(Buffer.from(JSON.stringify(text.slice(at, end)).slice(1, -1)))
    at = end
    yield
  }
}

/** Both halves of a character stand in one piece. */
function pieceEnd(text: string, to: number): number {
  if (to >= text.length) return text.length
  return (text.charCodeAt(to - 1) & 0xfc00) === 0xd800 ? to - 1 : to
}

class Output {
  readonly #pieces: Pieces
  /** What stands behind the last piece. */
  #text = ''
  readonly #raw: RawStrings | undefined
  /** Behind the raw string that was found last. */
  #next = 0

  constructor(pieces: Pieces, raw?: RawStrings) {
    this.#pieces = pieces
    this.#raw = raw
  }

  *all(value: object): Generator<undefined, void> {
    yield* this.#value(value)
    this.#flush()
  }

  *#value(value: unknown): Generator<undefined, void> {
    if (Array.isArray(value)) yield* this.#list(value)
    else if (typeof value === 'string') yield* this.#string(value)
    else yield* this.#object(value as object)
  }

  *#string(text: string): Generator<undefined, void> {
    const at = this.#raw?.indexOf(text, this.#next) ?? -1
    if (at >= 0) {
      this.#next = at + 1
      this.#flush()
      this.#pieces.push(this.#raw!.bytesAt(at))
    } else if (text.length < PIECE) {
      if (this.#add(text)) yield
    } else {
      this.#text += '"'
      this.#flush()
      yield* writeString(text, this.#pieces)
      this.#text += '"'
    }
  }

  *#list(items: readonly unknown[]): Generator<undefined, void> {
    let before = '['
    for (const item of items) {
      this.#text += before
      before = ','
      if (this.#isLarge(item)) yield* this.#value(item)
      else if (this.#add(item)) yield
    }
    this.#text += ']'
  }

  *#object(value: object): Generator<undefined, void> {
    let before = '{'
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined) continue
      this.#text += `${before}${JSON.stringify(name)}:`
      before = ','
      if (this.#isLarge(member)) yield* this.#value(member)
      else if (this.#add(member)) yield
    }
    this.#text += before === '{' ? '{}' : '}'
  }

  #isLarge(value: unknown): boolean {
    if (typeof value === 'string') return value.length >= (this.#raw ? LONG : PIECE) && !isLongNumber(value)
    return typeof value === 'object' && isLarge(value)
  }

  /** True when a piece is full. */
  #add(value: unknown): boolean {
    this.#text += JSON.stringify(value) ?? 'null'
    if (this.#text.length < PIECE) return false
    this.#flush()
    return true
  }

  #flush(): void {
    if (this.#text !== '') this.#pieces.push(Buffer.from(stringifyLossless(this.#text)))
    this.#text = ''
  }
}
