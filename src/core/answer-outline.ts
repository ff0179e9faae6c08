/** What a whole answer says that is too large to be kept: the small members of its object, and how much text it has. */

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const SPACE = 0x20

/** Bytes of a member, with its name, that is kept as it is; usage has some hundred. */
const MAX_MEMBER = 4096
/** Of all that is kept. */
const MAX_KEPT = 64 * 1024
/** Bytes of a string from which on it may be media. */
const LONG = 1024
/** Bytes at the end of a piece of a long string that decide what it is. */
const SAMPLE = 64
/** What a long string of media consists of (RFC 4648); text of that length has spaces. */
const BASE64 = /^[\w+/=\\-]+$/
/** Names of members that hold log probabilities, and the bytes that such a name has at most. */
const LOG_PROBABILITIES = /log_?prob/i
const MAX_NAME = 32
/** The name of a member, and what its value begins with. */
const HEAD = /^\s*("(?:[^"\\]|\\.)*")\s*:\s*(["[{])/
const EMPTY: Readonly<Record<string, string>> = { '"': '""', '[': '[]', '{': '{}' }

/** Scans a JSON text in pieces, each once, and keeps little of it. Leaves syntax to the parser. */
export class AnswerOutline {
  readonly #members: string[] = []
  #kept = 0
  /** What is here of the member that is read, up to its bound. */
  readonly #member = Buffer.allocUnsafe(MAX_MEMBER)
  #size = 0
  #depth = 0
  #begun = 0
  #quoted = false
  #escaped = false
  /** Bytes of the string that is read, or was last; and whether it is media so far. */
  #length = 0
  #isMedia = false
  /** Where the string begins, or was last, in this piece; below 0 where that was in one before. */
  #from = 0
  /** The string as far as it was in pieces before, where it is short. */
  #before = ''
  /** The level of the log probabilities that are read; 0 elsewhere. */
  #level = 0
  #text = 0

  /** Whether it is JSON of an object or a list, as far as it came. */
  get isJson(): boolean {
    return this.#begun === OPEN_OBJECT || this.#begun === OPEN_LIST
  }

  /** Bytes so far, without those of media and of log probabilities. */
  get text(): number {
    return this.#text
  }

  /**
   * The object without its large members, of which a list, an object or a text is left, and nothing is in it. Undefined
   * for what is no object.
   */
  get json(): string | undefined {
    return this.#begun === OPEN_OBJECT ? `{${this.#members.join(',')}}` : undefined
  }

  add(piece: Buffer): void {
    const { length } = piece
    /** From where on nothing is kept of the member. */
    let from = 0
    this.#from = -1
    let at = this.#quoted ? this.#afterString(piece, 0) : 0
    while (at < length) {
      const code = piece[at++]!
      if (this.#level === 0) this.#text++
      if (code === QUOTE) {
        this.#length = 0
        this.#isMedia = true
        this.#from = at
        at = this.#afterString(piece, at)
        continue
      }
      if (code === COLON) this.#named(piece)
      else if (code === OPEN_OBJECT || code === OPEN_LIST) {
        this.#begun ||= code
        if (++this.#depth === 1) from = at
      } else if (code === COMMA) {
        if (this.#depth <= this.#level) this.#level = 0
        if (this.#depth === 1) {
          this.#keep(piece, from, at - 1)
          this.#ended()
          from = at
        }
      } else if (code === CLOSE_OBJECT || code === CLOSE_LIST) {
        if (--this.#depth < this.#level) this.#level = 0
        if (this.#depth === 0) {
          this.#keep(piece, from, at - 1)
          this.#ended()
        }
      } else if (code > SPACE) this.#begun ||= code
    }
    if (this.#depth > 0) this.#keep(piece, from, length)
    if (this.#from >= 0) this.#before = this.#stringIn(piece)
  }

  /** The last string is a name. */
  #named(piece: Buffer): void {
    if (this.#level > 0) return
    const name = this.#from < 0 ? this.#before : this.#stringIn(piece)
    if (LOG_PROBABILITIES.test(name)) this.#level = this.#depth
  }

  /** The string that begins in this piece, where it is short. */
  #stringIn(piece: Buffer): string {
    return this.#length > MAX_NAME ? '' : piece.toString('latin1', this.#from, this.#from + this.#length)
  }

  #keep(piece: Buffer, from: number, to: number): void {
    const room = MAX_MEMBER - this.#size
    if (room > 0) piece.copy(this.#member, this.#size, from, Math.min(to, from + room))
    this.#size += to - from
  }

  /** A member of the object is whole. */
  #ended(): void {
    const isWhole = this.#size <= MAX_MEMBER
    const text = this.#member.toString('utf8', 0, Math.min(this.#size, MAX_MEMBER))
    this.#size = 0
    const [, name, begin] = isWhole ? [] : (HEAD.exec(text) ?? [])
    const kept = isWhole ? text : name && begin ? `${name}:${EMPTY[begin]}` : ''
    if (kept.trim() === '' || this.#kept + kept.length > MAX_KEPT) return
    this.#kept += kept.length
    this.#members.push(kept)
  }

  /** Behind the string that goes on at this place; the end of the piece where it does not end. */
  #afterString(piece: Buffer, from: number): number {
    let at = from
    if (this.#escaped && at < piece.length) {
      this.#escaped = false
      at++
    }
    for (;;) {
      const quote = piece.indexOf(QUOTE, at)
      const end = quote < 0 ? piece.length : quote
      let backslashes = 0
      while (end - 1 - backslashes >= at && piece[end - 1 - backslashes] === BACKSLASH) backslashes++
      const isEscaped = backslashes % 2 === 1
      if (quote >= 0 && isEscaped) {
        at = quote + 1
        continue
      }
      this.#quoted = quote < 0
      this.#escaped = isEscaped
      this.#count(piece, from, end)
      if (quote < 0) return end
      if (this.#level === 0) this.#text++
      return quote + 1
    }
  }

  /** A string, or a piece of one. */
  #count(piece: Buffer, from: number, to: number): void {
    this.#length += to - from
    if (this.#from < 0 && this.#length <= MAX_NAME) this.#before += piece.toString('latin1', from, to)
    if (this.#level > 0 || to === from) return
    const isLong = this.#length >= LONG
    if (isLong && this.#isMedia) this.#isMedia = BASE64.test(piece.toString('latin1', Math.max(from, to - SAMPLE), to))
    if (!isLong || !this.#isMedia) this.#text += to - from
  }
}

/** Bytes that are scanned in one step. */
const STEP = 256 * 1024

/** The same in steps. */
export function* outlineSteps(outline: AnswerOutline, pieces: Iterable<Buffer>): Generator<undefined, void> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += STEP) {
      outline.add(piece.subarray(at, at + STEP))
      yield
    }
  }
}
