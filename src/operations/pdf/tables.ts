/**
 * Where the tables of a PDF say that objects are (ISO 32000-2 sections 7.5.4 and 7.5.8). An entry that leads into the middle of
 * a number, or to what only some readers take for an object, gives an object another number than it has.
 */
import { type PdfBudget, spend, Unclear } from './budget.ts'
import { Dictionary, KEY } from './dictionary.ts'
import { headerAt } from './header.ts'
import {
  endOfWord,
  hasWord,
  integerAt,
  integersAt,
  isDigit,
  isOdd,
  isSign,
  isSpace,
  opensArray,
  opensDictionary,
  passSpace,
} from './syntax.ts'

const MARK = '%PDF-'
const START = 'start'
export const TABLE = 'xref'
/** Bytes of an entry, of the place in it, and of the generation behind that. */
const ENTRY = 20
const PLACE = 10
const GENERATION = 5
const IN_USE = 0x6e
const FREE = 0x66
const PERCENT = 0x25
/** Bytes of space before an object that readers pass over. */
const MAX_SPACE = 8
/** Readers take larger ones in different ways. */
const MAX_PLACE = 2 ** 31
const MAX_WIDTH = 8
/** Of an entry of a stream: an object that stands in the file. */
const PLAIN = 1
/** PNG's filters of rows. */
const FIRST_PREDICTOR = 10
const UNCHANGED = 0
const UP = 2

export class Tables {
  readonly #bytes: Buffer
  readonly #budget: PdfBudget
  /** A part of readers counts from here. */
  readonly #mark: number

  constructor(bytes: Buffer, budget: PdfBudget) {
    this.#bytes = bytes
    this.#budget = budget
    this.#mark = Math.max(0, bytes.indexOf(MARK, 0, 'latin1'))
  }

  /** Checks the table behind the word at `word`, if there is one. */
  checkTable(word: number): void {
    const bytes = this.#bytes
    let at = passSpace(bytes, word + TABLE.length, this.#budget)
    // The word that says where the last table is ends in the same way.
    const isStart = hasWord(bytes, word - START.length, START)
    while (isDigit(bytes, at)) {
      const { values, next } = integersAt(bytes, at, 2)
      spend(this.#budget, 'parsed', next - at)
      const [first, count] = values
      if (isStart && !(isDigit(bytes, next) && endOfWord(bytes, next) - next >= PLACE)) return
      if (first === undefined || count === undefined) throw new Unclear('table')
      spend(this.#budget, 'references', count)
      at = next
      for (let index = 0; index < count; index++, at += ENTRY) this.#checkEntry(at, first + index)
      at = passSpace(bytes, at, this.#budget)
    }
  }

  #checkEntry(at: number, number: number) {
    const bytes = this.#bytes
    const generation = at + PLACE + 1
    const kind = generation + GENERATION + 1
    for (let place = at; place < at + ENTRY; place++) {
      const isGap = place === generation - 1 || place === kind - 1 || place > kind
      if (isGap ? !isSpace(bytes, place) : !isDigit(bytes, place) && place !== kind) throw new Unclear('entry')
    }
    if (bytes[kind] === IN_USE) this.#checkPlace(placeIn(bytes, at, at + PLACE), number)
    else if (bytes[kind] !== FREE) throw new Unclear('entry')
  }

  /** Checks the table that the stream of a dictionary holds. */
  checkStream(dictionary: Dictionary, stream: Buffer): void {
    const { bytes } = dictionary
    const widths = integersIn(bytes, dictionary.at(KEY.W))
    const [kindWidth = 0, placeWidth = 0, otherWidth = 0] = widths
    if (widths.length < 3 || widths.some(width => width > MAX_WIDTH)) throw new Unclear('widths')
    const width = kindWidth + placeWidth + otherWidth
    if (width === 0) throw new Unclear('widths')
    const rows = isPredicted(dictionary, width) ? unpredicted(stream, width) : stream
    const ranges = dictionary.has(KEY.Index)
      ? integersIn(bytes, dictionary.at(KEY.Index))
      : [0, integerAt(bytes, dictionary.at(KEY.Size))]
    let at = 0
    for (let range = 0; range + 1 < ranges.length; range += 2) {
      const first = ranges[range]!
      const count = ranges[range + 1]!
      spend(this.#budget, 'references', count)
      if (at + count * width > rows.length) throw new Unclear('rows')
      for (let index = 0; index < count; index++, at += width) {
        const kind = kindWidth === 0 ? PLAIN : wide(rows, at, kindWidth)
        if (kind === PLAIN) this.#checkPlace(wide(rows, at + kindWidth, placeWidth), first + index)
      }
    }
  }

  /** Throws {@link Unclear} unless the object is there, or nothing that a reader takes for one. */
  #checkPlace(place: number, number: number) {
    // None that is in use stands at the beginning.
    if (place === 0) return
    if (place >= MAX_PLACE) throw new Unclear('place')
    this.#checkHeader(place, number)
    if (this.#mark > 0) this.#checkHeader(place + this.#mark, number)
  }

  #checkHeader(place: number, number: number) {
    const bytes = this.#bytes
    let at = place
    while (at < place + MAX_SPACE && isSpace(bytes, at)) at++
    if (isDigit(bytes, at)) {
      const isWithin = at === place && (isDigit(bytes, at - 1) || isSign(bytes, at - 1))
      if (isWithin || headerAt(bytes, at) !== number) throw new Unclear('header')
    } else if (isSpace(bytes, at) || isSign(bytes, at) || isOdd(bytes, at) || bytes[at] === PERCENT) {
      throw new Unclear('header')
    }
  }
}

function placeIn(bytes: Buffer, from: number, end: number): number {
  let place = 0
  for (let at = from; at < end; at++) place = place * 10 + bytes[at]! - 0x30
  return place
}

/** The whole numbers of an array. */
function integersIn(bytes: Buffer, at: number): number[] {
  if (!opensArray(bytes, at)) throw new Unclear('array')
  return integersAt(bytes, at + 1, Number.POSITIVE_INFINITY).values
}

/** The number in so many bytes. */
function wide(bytes: Buffer, from: number, width: number): number {
  let value = 0
  for (let at = from; at < from + width; at++) value = value * 256 + bytes[at]!
  return value
}

/** Whether rows of `width` bytes have one more, which says how they were filtered. */
function isPredicted(dictionary: Dictionary, width: number): boolean {
  if (!dictionary.has(KEY.DecodeParms)) return false
  const { bytes } = dictionary
  const at = dictionary.at(KEY.DecodeParms)
  if (!opensDictionary(bytes, at)) throw new Unclear('predictor')
  const parameters = new Dictionary(bytes, at)
  const parameter = (key: 'Predictor' | 'Columns' | 'Colors' | 'BitsPerComponent', usual: number) =>
    parameters.has(KEY[key]) ? integerAt(bytes, parameters.at(KEY[key])) : usual
  const predictor = parameter('Predictor', 1)
  if (predictor === 1) return false
  if (predictor < FIRST_PREDICTOR || parameter('Columns', 1) !== width) throw new Unclear('predictor')
  if (parameter('Colors', 1) !== 1 || parameter('BitsPerComponent', 8) !== 8) throw new Unclear('predictor')
  return true
}

function unpredicted(stream: Buffer, width: number): Buffer {
  const count = Math.floor(stream.length / (width + 1))
  const rows = Buffer.alloc(count * width)
  for (let row = 0; row < count; row++) {
    const from = row * (width + 1)
    const filter = stream[from]
    if (filter !== UNCHANGED && filter !== UP) throw new Unclear('predictor')
    for (let column = 0; column < width; column++) {
      const at = row * width + column
      const above = filter === UP && row > 0 ? rows[at - width]! : 0
      rows[at] = stream[from + 1 + column]! + above
    }
  }
  return rows
}
