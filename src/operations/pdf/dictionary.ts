/** Where the values stand that a tree of pages is found by. */
import { Unclear } from './budget.ts'
import { closesDictionary, endOfValue, endOfWord, isName, isOdd, nameAt, skipSpace } from './syntax.ts'

/** The keys that are looked at. */
export const KEY = {
  Type: 0,
  Pages: 1,
  Kids: 2,
  Count: 3,
  Root: 4,
  Encrypt: 5,
  Linearized: 6,
  N: 7,
  First: 8,
  Filter: 9,
  DecodeParms: 10,
  F: 11,
  DP: 12,
  W: 13,
  Index: 14,
  Size: 15,
  Predictor: 16,
  Columns: 17,
  Colors: 18,
  BitsPerComponent: 19,
} as const
type Key = (typeof KEY)[keyof typeof KEY]

const keys = new Map<string, Key>(Object.entries(KEY))
const MAX_KEY = 32
/** The one key of a first byte and a length. */
const byStart = new Map([...keys].map(([name, key]) => [name.charCodeAt(0) * MAX_KEY + name.length, { name, key }]))
const isStart = new Uint8Array(256 * MAX_KEY)
for (const start of byStart.keys()) isStart[start] = 1

const NUMBER_SIGN = 0x23

/** A dictionary at the top of an object: what is inside its values is passed over. */
export class Dictionary {
  readonly bytes: Buffer
  /** Behind it. */
  readonly end: number
  /** A bit for each key that it has. */
  #has = 0
  readonly #found: { readonly key: Key; readonly at: number }[] = []

  /** `from`: where it opens. Throws {@link Unclear} for one that is read in different ways. */
  constructor(bytes: Buffer, from: number) {
    this.bytes = bytes
    let at = skipSpace(bytes, from + 2)
    for (; !closesDictionary(bytes, at); at = skipSpace(bytes, at)) {
      if (!isName(bytes, at)) throw new Unclear('key')
      const end = endOfWord(bytes, at)
      const key = keyOf(bytes, at, end)
      at = skipSpace(bytes, end)
      if (key !== undefined) this.#add(key, at)
      at = endOfValue(bytes, at)
    }
    this.end = at + 2
  }

  /** Whether it has none of the keys. */
  get isEmpty(): boolean {
    return this.#has === 0
  }

  has(key: Key): boolean {
    return (this.#has & (1 << key)) !== 0
  }

  /** Where the value of a key stands; throws {@link Unclear} where it has none. */
  at(key: Key): number {
    for (const found of this.#found) if (found.key === key) return found.at
    throw new Unclear('key')
  }

  #add(key: Key, at: number) {
    // Some readers take the first, and some the last.
    if (this.has(key)) throw new Unclear('twice')
    this.#has |= 1 << key
    this.#found.push({ key, at })
  }
}

/** The key that the name from `at` to `end` is. */
function keyOf(bytes: Buffer, at: number, end: number): Key | undefined {
  for (let place = at + 1; place < end; place++) {
    if (bytes[place] === NUMBER_SIGN || isOdd(bytes, place)) return unusualKey(bytes, at)
  }
  const length = end - at - 1
  const start = length === 0 || length >= MAX_KEY ? 0 : bytes[at + 1]! * MAX_KEY + length
  if (!isStart[start]) return undefined
  const { name, key } = byStart.get(start)!
  for (let index = 1; index < length; index++) if (bytes[at + 1 + index] !== name.charCodeAt(index)) return undefined
  return key
}

/** Some readers end a name before an odd character. */
function unusualKey(bytes: Buffer, at: number): Key | undefined {
  const { name, isOdd } = nameAt(bytes, at)
  const key = keys.get(name)
  if (isOdd && key !== undefined) throw new Unclear('key')
  return key
}
