/** Finds a credential in what its provider sends back, in every usual encoding. */

/** What stands in the place of a credential. */
export const MASK = '***'
/** This many consecutive characters of a credential count as a part of it. */
const RUN = 12
/** Runs masked per text; everything after the last is masked whole. */
const MAX_RUNS = 256
/** Characters hashed together. A run of 12 contains one of these groups at every eighth position. */
const GROUP = 5
const STEP = RUN - GROUP + 1
/** Shorter secrets are treated as words. */
const SHORTEST = 8
/** Longest credential searched for, in characters. */
const LONGEST = 4096
/** Longest common prefix of credentials of one kind. */
const LONGEST_PREFIX = 'sk-ant-api03-'.length
/** Positions compared per group: one per encoding. Only a credential that repeats itself has more. */
const MAX_PLACES = 20
/** Fruitless comparisons allowed per text, plus one per 64 characters: more than any natural language needs. */
const MAX_FRUITLESS = 1024
/** Positions of the table visited per text, beside those: a credential can be made of groups that share a hash. */
const VISITS_PER_CHARACTER = 1
/** Credentials whose masks are cached. */
const MAX_MASKS = 256

/** The first `skip` characters are common to many credentials, such as `sk-ant-api03-`. */
interface Form {
  readonly text: string
  readonly skip: number
}

const upper = (code: number, digits: number) => code.toString(16).toUpperCase().padStart(digits, '0')
const lower = (code: number, digits: number) => code.toString(16).padStart(digits, '0')
const HTML_NAMES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const JSON_ESCAPES: Readonly<Record<string, string>> = { '"': '\\"', '\\': '\\\\', '/': '\\/' }

/** Encodings of a character other than letters, digits, `-`, `_`, `.` and `~`; the first is the plain one. */
const ESCAPES: readonly ((char: string, code: number) => string)[] = [
  char => char,
  // Percent.
  (_, code) => `%${upper(code, 2)}`,
  (_, code) => `%${lower(code, 2)}`,
  (char, code) => (char === '/' ? char : `%${upper(code, 2)}`),
  // JSON.
  char => (char === '/' ? char : (JSON_ESCAPES[char] ?? char)),
  char => JSON_ESCAPES[char] ?? char,
  (_, code) => `\\u${upper(code, 4)}`,
  (_, code) => `\\u${lower(code, 4)}`,
  // HTML.
  char => HTML_NAMES[char] ?? char,
  (char, code) => HTML_NAMES[char] ?? `&#${code};`,
  (_, code) => `&#${code};`,
  (_, code) => `&#x${upper(code, 2)};`,
  (_, code) => `&#x${lower(code, 2)};`,
]

function formsOf(secret: string): Form[] {
  // Words only, so that a part of a UUID is not taken for a prefix.
  const words = /^(?=.{24})(?:[a-z]{1,6}(?:\d\d)?[-_]){1,3}/i.exec(secret)?.[0].length ?? 0
  const skip = Math.min(words, LONGEST_PREFIX)
  const forms = new Map<string, number>()
  for (const escaped of ESCAPES) {
    forms.set(
      secret.replace(/[^\w.~-]/g, char => escaped(char, char.charCodeAt(0))),
      skip,
    )
  }
  // Three bytes become four characters, so the result depends on how many bytes precede the credential.
  for (const before of [0, 1, 2]) {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)])
    // The characters that the credential alone determines.
    const whole = bytes.toString('base64').slice([0, 2, 3][before], Math.floor((bytes.length * 8) / 6))
    const common = skip === 0 ? 0 : Math.ceil((skip * 4) / 3)
    forms.set(whole, common)
    forms.set(whole.replaceAll('+', '-').replaceAll('/', '_'), common)
  }
  return [...forms].map(([text, skip]) => ({ text, skip }))
}

/** Splits a secret. Of a service account's JSON only the private key is secret: the other fields are public. */
function partsOf(secret: string): string[] {
  if (!secret.startsWith('{')) return secret.slice(0, LONGEST).split(/\s+/)
  const key = /"private_key"\s*:\s*"([^"]*)"/.exec(secret)?.[1] ?? ''
  return key.split(/\\n|\n/).filter(line => line !== '' && !line.startsWith('-----'))
}

/** Separator between forms; it equals no character of a text. */
const BETWEEN = 0xffff

/** A part of a text: from `start` up to `end`, exclusive. */
type Run = readonly [start: number, end: number]

/** Finds runs of characters that a text shares with one of the forms. */
class Needles {
  /** All forms, each surrounded by `BETWEEN`. */
  readonly #codes: Uint16Array
  /** Hash of a group → a position of it in `codes`; `next` chains further ones. 0 is empty. */
  readonly #heads: Int32Array
  readonly #next: Int32Array
  readonly #shift: number
  /** Positions visited for the text that is being read. */
  #visits = 0

  /** A run is 12 characters of a form after its first `skip`; characters before them that match extend it. */
  constructor(forms: readonly Form[]) {
    const size = forms.reduce((sum, { text }) => sum + text.length + 1, 1)
    const bits = Math.max(8, Math.ceil(Math.log2(size * 2)))
    this.#codes = new Uint16Array(size).fill(BETWEEN)
    this.#next = new Int32Array(size)
    this.#heads = new Int32Array(2 ** bits)
    this.#shift = 32 - bits
    let at = 1
    for (const { text, skip } of forms) {
      for (let index = 0; index < text.length; index++) this.#codes[at + index] = text.charCodeAt(index)
      for (let index = skip; index + GROUP <= text.length; index++) {
        const hash = hashAt(text, index) >>> this.#shift
        this.#next[at + index] = this.#heads[hash]!
        this.#heads[hash] = at + index
      }
      at += text.length + 1
    }
  }

  /** Runs from left to right; undefined when there are none. Linear in the length of the text. */
  runsIn(text: string): Run[] | undefined {
    const heads = this.#heads
    const shift = this.#shift
    const last = text.length - GROUP
    let runs: Run[] | undefined
    let fruitless = 0
    let done = 0
    this.#visits = 0
    for (let at = 0; at <= last; ) {
      const place = heads[hashAt(text, at) >>> shift]!
      if (place === 0) {
        at += STEP
        continue
      }
      const found = this.#longest(text, at, place, done)
      if (typeof found === 'number') {
        fruitless += found
        at += STEP
        const isDear = this.#visits > MAX_FRUITLESS + text.length * VISITS_PER_CHARACTER
        if (!isDear && fruitless <= MAX_FRUITLESS + text.length / 64) continue
      }
      runs ??= []
      const all = typeof found === 'number' || runs.length === MAX_RUNS
      const run: Run = all ? [done, text.length] : found
      runs.push(run)
      done = run[1]
      at = done
    }
    return runs
  }

  /** The longest run around the group at `at` that starts at `from` or later; else the number of positions compared. */
  #longest(text: string, at: number, first: number, from: number): Run | number {
    const codes = this.#codes
    let run: Run | undefined
    let looks = 0
    for (let place = first; place !== 0 && looks < MAX_PLACES; place = this.#next[place]!) {
      this.#visits++
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

/** Hash of the group at `at`; its upper bits index the table. */
function hashAt(text: string, at: number): number {
  const head = (text.charCodeAt(at) << 14) ^ (text.charCodeAt(at + 1) << 7) ^ text.charCodeAt(at + 2)
  return Math.imul(head ^ (text.charCodeAt(at + 3) << 25) ^ (text.charCodeAt(at + 4) << 20), 0x9e3779b1)
}

/** Matches one credential, or several separated by spaces. */
export class Mask {
  readonly #forms: readonly Form[]
  /** Parts too short for a run, matched literally. */
  readonly #short: readonly string[]
  readonly #needles: Needles
  #strict: Needles | undefined

  constructor(secret: string) {
    const parts = partsOf(secret)
    this.#forms = parts.flatMap(formsOf)
    this.#short = parts
      .flatMap(part => [part, ...part.split(':')])
      .filter(part => part.length >= SHORTEST && part.length < RUN)
      .flatMap(part => formsOf(part).map(({ text }) => text))
      .filter(text => text.length >= SHORTEST)
    this.#needles = new Needles(this.#forms)
  }

  /** For messages and headers: masks any 12 consecutive characters, and a short credential as a whole. */
  strict(text: string): string {
    this.#strict ??= new Needles(this.#forms.map(({ text }) => ({ text, skip: 0 })))
    const runs = this.#strict.runsIn(text)
    return this.#short.reduce((clean, part) => clean.replaceAll(part, MASK), runs ? masked(text, runs, 0) : text)
  }

  /**
   * For answers: a prefix common to all credentials of a kind is no match, and credentials below 12 characters are
   * ignored. `before` is the end of the preceding text. 1,000 characters take about 4 us.
   */
  answer(text: string, before = ''): string {
    const runs = this.#needles.runsIn(before + text)
    return runs ? masked(before + text, runs, before.length) : text
  }
}

/**
 * Masks an answer's text that arrives in pieces. Of a credential split between pieces, the first 11 characters may
 * show.
 */
export class PiecewiseMask {
  readonly #mask: Mask
  /** The end of the preceding pieces. */
  #tail = ''

  constructor(mask: Mask) {
    this.#mask = mask
  }

  /** The next piece, masked. Credentials hold no spaces, so most pieces of prose are not searched. */
  next(text: string): string {
    if (text.length < RUN) {
      const space = text.indexOf(' ')
      if (this.#tail.length + (space < 0 ? text.length : space) < RUN) {
        this.#tail = space < 0 ? this.#tail + text : text.slice(text.lastIndexOf(' ') + 1)
        return text
      }
    }
    const clean = this.#mask.answer(text, this.#tail)
    this.#tail = (this.#tail + text).slice(1 - RUN)
    return clean
  }
}

/** `text` after its first `shown` characters, with the runs masked. */
function masked(text: string, runs: readonly Run[], shown: number): string {
  let clean = ''
  let at = shown
  for (const [start, end] of runs) {
    if (end <= at) continue
    clean += text.slice(at, Math.max(start, at)) + MASK
    at = end
  }
  return clean + text.slice(at)
}

const masks = new Map<string, Mask>()

/** The cached mask of a credential; undefined when it is too short to be one. */
export function maskOf(secret: string): Mask | undefined {
  if (secret.length < SHORTEST) return undefined
  let mask = masks.get(secret)
  if (!mask) {
    mask = new Mask(secret)
    if (masks.size >= MAX_MASKS) masks.delete(masks.keys().next().value!)
    masks.set(secret, mask)
  }
  return mask
}

/** `text` without any credential in use. Costs one search per cached mask: for the log only. */
export function maskAll(text: string): string {
  let clean = text
  for (const mask of masks.values()) clean = mask.answer(clean)
  return clean
}
