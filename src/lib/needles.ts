/** Finds parts of a credential's forms in a text. */

/** This many consecutive characters of a credential count as a part of it. */
export const RUN = 12
/** Runs masked per text; everything after the last is masked whole. */
const MAX_RUNS = 256
/** Characters hashed together. A run of 12 contains one of these groups at every eighth position. */
const GROUP = 5
const STEP = RUN - GROUP + 1
/** Positions compared per group: one per encoding. Only a credential that repeats itself has more. */
const MAX_PLACES = 20
/** Fruitless comparisons allowed per text, plus one per 64 characters: more than any natural language needs. */
const MAX_FRUITLESS = 1024
/** Positions of the table visited per text, beside those: a credential can be made of groups that share a hash. */
const VISITS_PER_CHARACTER = 1

/** The first `skip` characters are common to many credentials, such as `sk-ant-api03-`. */
export interface Form {
  readonly text: string
  readonly skip: number
}

/** Separator between forms; it equals no character of a text. */
const BETWEEN = 0xffff

/** A part of a text: from `start` up to `end`, exclusive. */
export type Run = readonly [start: number, end: number]

/** How far a text has been searched, and what was found. */
class Search {
  at = 0
  /** Behind the last run. */
  done = 0
  fruitless = 0
  visits = 0
  runs: Run[] | undefined
}

/** Finds runs of characters that a text shares with one of the forms, which have fewer than 65,536 together. */
export class Needles {
  /** All forms, each surrounded by `BETWEEN`. */
  readonly #codes: Uint16Array
  /** Hash of a group → a position of it in `codes`; `next` chains further ones, those in prefixes last. 0 is empty. */
  readonly #heads: Uint16Array
  readonly #next: Uint16Array
  /** 1 at positions in the first `skip` characters of a form. */
  readonly #isPrefix: Uint8Array
  readonly #shift: number

  constructor(forms: readonly Form[]) {
    const size = forms.reduce((sum, { text }) => sum + text.length + 1, 1)
    const bits = Math.min(16, Math.max(8, Math.ceil(Math.log2(size * 2))))
    this.#codes = new Uint16Array(size).fill(BETWEEN)
    this.#next = new Uint16Array(size)
    this.#isPrefix = new Uint8Array(size)
    this.#heads = new Uint16Array(2 ** bits)
    this.#shift = 32 - bits
    let at = 1
    for (const { text, skip } of forms) {
      for (let index = 0; index < text.length; index++) this.#codes[at + index] = text.charCodeAt(index)
      this.#isPrefix.fill(1, at, at + Math.min(skip, text.length))
      this.#index(at, at + Math.min(skip, text.length - GROUP + 1))
      at += text.length + 1
    }
    at = 1
    for (const { text, skip } of forms) {
      this.#index(at + skip, at + text.length - GROUP + 1)
      at += text.length + 1
    }
  }

  /** Adds the groups that begin from `start` up to `end`. */
  #index(start: number, end: number): void {
    const codes = this.#codes
    for (let at = start; at < end; at++) {
      const hash = hashOf(codes[at]!, codes[at + 1]!, codes[at + 2]!, codes[at + 3]!, codes[at + 4]!) >>> this.#shift
      this.#next[at] = this.#heads[hash]!
      this.#heads[hash] = at
    }
  }

  /** Bytes of the tables. */
  get bytes(): number {
    return this.#codes.byteLength + this.#next.byteLength + this.#isPrefix.byteLength + this.#heads.byteLength
  }

  /**
   * Runs from left to right; undefined when there are none. A run is 12 characters of a form. Without `withPrefixes` a group
   * after its first `skip` characters begins the search; those before it that match extend the run. Linear in the length.
   */
  runsIn(text: string, withPrefixes: boolean): Run[] | undefined {
    const search = new Search()
    this.#search(search, text, withPrefixes, text.length)
    return search.runs
  }

  /** Goes on to `to`, or up to a run further. */
  #search(search: Search, text: string, withPrefixes: boolean, to: number): void {
    const heads = this.#heads
    const shift = this.#shift
    const end = Math.min(to, text.length - GROUP + 1)
    let { at, done, fruitless, runs } = search
    while (at < end) {
      const place = heads[hashAt(text, at) >>> shift]!
      if (place === 0) {
        at += STEP
        continue
      }
      const found = this.#longest(search, text, at, place, done, withPrefixes)
      if (typeof found === 'number') {
        fruitless += found
        at += STEP
        const isDear = search.visits > MAX_FRUITLESS + text.length * VISITS_PER_CHARACTER
        if (!isDear && fruitless <= MAX_FRUITLESS + text.length / 64) continue
      }
      runs ??= []
      const all = typeof found === 'number' || runs.length === MAX_RUNS
      const run: Run = all ? [done, text.length] : found
      runs.push(run)
      done = run[1]
      at = done
    }
    search.at = Math.max(at, to)
    search.done = done
    search.fruitless = fruitless
    search.runs = runs
  }

  /** The longest run around the group at `at` that starts at `from` or later; else the number of positions compared. */
  #longest(search: Search, text: string, at: number, first: number, from: number, withPrefixes: boolean): Run | number {
    const codes = this.#codes
    let run: Run | undefined
    let looks = 0
    for (let place = first; place !== 0 && looks < MAX_PLACES; place = this.#next[place]!) {
      search.visits++
      // Only such positions follow.
      if (!withPrefixes && this.#isPrefix[place] === 1) break
      let behind = 0
      while (at + behind < text.length && text.charCodeAt(at + behind) === codes[place + behind]) behind++
      if (behind < GROUP) continue
      looks++
      let before = 0
      while (at - before > from && text.charCodeAt(at - before - 1) === codes[place - before - 1]) before++
      const length = before + behind
      if (length >= RUN && (!run || length > run[1] - run[0])) run = [at - before, at + behind]
    }
    return run ?? looks
  }
}

/** Hash of a group; its upper bits index the table. */
const hashOf = (a: number, b: number, c: number, d: number, e: number): number =>
  Math.imul((a << 14) ^ (b << 7) ^ c ^ (d << 25) ^ (e << 20), 0x9e3779b1)

const hashAt = (text: string, at: number): number =>
  hashOf(
    text.charCodeAt(at),
    text.charCodeAt(at + 1),
    text.charCodeAt(at + 2),
    text.charCodeAt(at + 3),
    text.charCodeAt(at + 4),
  )
