/** The bytes of streams that hold objects and tables (ISO 32000-2 sections 7.3.8 and 7.5.7). */
import { constants, inflateSync } from 'node:zlib'
import { type PdfBudget, spend, Unclear } from './budget.ts'
import { type Dictionary, KEY } from './dictionary.ts'
import {
  closesArray,
  endOfWord,
  hasWord,
  isDigit,
  isNamed,
  isSign,
  opensArray,
  passSpace,
  skipSpace,
} from './syntax.ts'

const STREAM = 'stream'
const END = 'endstream'
const CARRIAGE_RETURN = 0x0d
const LINE_FEED = 0x0a
/** Bytes that say what a stream holds, with the code that they are packed in. */
const HEAD = 512
/** Bytes that a packed one becomes at most, in streams as writers make them. */
const USUAL_RATIO = 32

/** The streams of a file, read in the order in which they stand. */
export class Streams {
  readonly #bytes: Buffer
  readonly #budget: PdfBudget
  /** Of the last one that was read. */
  #end = 0

  constructor(bytes: Buffer, budget: PdfBudget) {
    this.#bytes = bytes
    this.#budget = budget
  }

  /** What the stream of a dictionary holds, if it has one; throws {@link Unclear} for another form, and beyond the budget. */
  read(dictionary: Dictionary): Buffer | undefined {
    const from = this.#begin(dictionary.end)
    if (from === undefined) return undefined
    spend(this.#budget, 'streams', 1)
    // Places ascend: the end that was found is the next one of all before it.
    if (this.#end < from) {
      const end = this.#bytes.indexOf(END, from, 'latin1')
      this.#end = end < 0 ? this.#bytes.length : end
    }
    const stream = this.#bytes.subarray(from, this.#end)
    return isDeflated(dictionary) ? inflated(stream, this.#budget) : stream
  }

  /**
   * Whether the stream of a dictionary, if it has one, may begin with a number, which other streams than those of objects do
   * not. Little of it is read: profiles of colours are large.
   */
  mayHoldObjects(dictionary: Dictionary): boolean {
    const from = this.#begin(dictionary.end)
    if (from === undefined) return false
    spend(this.#budget, 'streams', 1)
    const packed = this.#bytes.subarray(from, from + HEAD)
    const head = isDeflated(dictionary) ? inflated(packed, this.#budget, constants.Z_SYNC_FLUSH) : packed
    const at = skipSpace(head, 0)
    return at >= head.length || isDigit(head, at) || isSign(head, at)
  }

  /** Where the stream begins whose dictionary ends at `end`. */
  #begin(end: number): number | undefined {
    const word = passSpace(this.#bytes, end, this.#budget)
    if (!hasWord(this.#bytes, word, STREAM)) return undefined
    const behind = word + STREAM.length
    const at = this.#bytes[behind] === CARRIAGE_RETURN ? behind + 1 : behind
    if (this.#bytes[at] === LINE_FEED) return at + 1
    if (at === behind) throw new Unclear('stream')
    return at
  }
}

/** Throws {@link Unclear} for other filters. */
function isDeflated(dictionary: Dictionary): boolean {
  // External files, and short forms that some readers take.
  if (dictionary.has(KEY.F) || dictionary.has(KEY.DP)) throw new Unclear('stream')
  if (!dictionary.has(KEY.Filter)) return false
  const { bytes } = dictionary
  const at = dictionary.at(KEY.Filter)
  const isArray = opensArray(bytes, at)
  const name = isArray ? skipSpace(bytes, at + 1) : at
  if (!isNamed(bytes, name, 'FlateDecode')) throw new Unclear('filter')
  if (isArray && !closesArray(bytes, skipSpace(bytes, endOfWord(bytes, name)))) throw new Unclear('filters')
  return true
}

/** `finishFlush`: whether it goes to its end, or as far as it is here. */
function inflated(packed: Buffer, budget: PdfBudget, finishFlush: number = constants.Z_FINISH): Buffer {
  const usual = USUAL_RATIO * packed.length
  const most = Math.min(budget.inflated, usual + budget.unusual)
  if (packed.length > budget.packed || most === 0) throw new Unclear('beyond the budget')
  budget.packed -= packed.length
  // What is none may become all of it before that is found.
  let became = most
  try {
    const bytes = inflateSync(packed, { maxOutputLength: most, finishFlush })
    became = bytes.length
    return bytes
  } catch {
    throw new Unclear('deflated')
  } finally {
    budget.inflated -= became
    budget.unusual -= Math.max(0, became - usual)
  }
}
