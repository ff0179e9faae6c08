/**
 * The objects of a PDF: all that stand anywhere in it, and in its streams of objects, under each of their numbers. A reader
 * takes some of them, by tables that may lead anywhere, or by a search of its own where these are damaged.
 */
import { type PdfBudget, spend, Unclear } from './budget.ts'
import { Dictionary, KEY } from './dictionary.ts'
import { headerBefore } from './header.ts'
import { Streams } from './streams.ts'
import { hasWord, integerAt, integersAt, opensDictionary, passSpace, referenceAt } from './syntax.ts'
import { TABLE, Tables } from './tables.ts'

const TRAILER = 'trailer'
const LETTER_B = 0x62
const LETTER_E = 0x65
const LETTER_F = 0x66
const LETTER_J = 0x6a
const LETTER_R = 0x72

export class PdfObjects {
  /** Dictionaries with Kids, by the number of their object. */
  readonly nodes = new Map<number, Dictionary[]>()
  /** Numbers of dictionaries without. */
  readonly leaves = new Set<number>()
  /** Numbers of objects that are no dictionaries. */
  readonly others = new Set<number>()
  /** Numbers that Pages of any dictionary refer to. */
  readonly trees = new Set<number>()
  /** Pages that a linearized file says that it has. */
  linearized = 0

  readonly #budget: PdfBudget
  readonly #streams: Streams
  readonly #tables: Tables
  #isEncrypted = false
  #hasPacked = false

  /** Throws {@link Unclear} where readers may find others. */
  constructor(bytes: Buffer, budget: PdfBudget) {
    this.#budget = budget
    this.#streams = new Streams(bytes, budget)
    this.#tables = new Tables(bytes, budget)
    for (let at = 2; at < bytes.length; at++) {
      const last = bytes[at]
      const before = bytes[at - 1]
      if (last === LETTER_J && before === LETTER_B) this.#object(bytes, at + 1)
      else if (before !== LETTER_E) continue
      else if (last === LETTER_R) this.#trailer(bytes, at + 1)
      else if (last === LETTER_F) this.#table(bytes, at + 1)
    }
    if (this.#isEncrypted && this.#hasPacked) throw new Unclear('encrypted')
  }

  /** Its header may end at `end`. */
  #object(bytes: Buffer, end: number) {
    const number = headerBefore(bytes, end)
    if (number === undefined) return
    const dictionary = this.#add(number, bytes, end)
    if (!dictionary) return
    if (dictionary.has(KEY.N)) {
      if (dictionary.has(KEY.First)) this.#packed(dictionary)
      // Some readers look for the first object at the beginning.
      else if (this.#streams.mayHoldObjects(dictionary)) throw new Unclear('stream')
    }
    if (dictionary.has(KEY.W)) {
      const stream = this.#streams.read(dictionary)
      if (stream) this.#tables.checkStream(dictionary, stream)
    }
  }

  #trailer(bytes: Buffer, end: number) {
    if (!hasWord(bytes, end - TRAILER.length, TRAILER)) return
    spend(this.#budget, 'objects', 1)
    const at = passSpace(bytes, end, this.#budget)
    if (opensDictionary(bytes, at)) this.#dictionary(bytes, at)
  }

  #table(bytes: Buffer, end: number) {
    if (!hasWord(bytes, end - TABLE.length, TABLE)) return
    spend(this.#budget, 'objects', 1)
    this.#tables.checkTable(end - TABLE.length)
  }

  /** The dictionary that the object behind `from` is. */
  #add(number: number, bytes: Buffer, from: number): Dictionary | undefined {
    spend(this.#budget, 'objects', 1)
    const at = passSpace(bytes, from, this.#budget)
    // What some readers take for the end of a stream may stand in it.
    if (at >= bytes.length) throw new Unclear('object')
    if (!opensDictionary(bytes, at)) {
      this.others.add(number)
      return undefined
    }
    const dictionary = this.#dictionary(bytes, at)
    if (!dictionary.has(KEY.Kids)) this.leaves.add(number)
    else {
      const nodes = this.nodes.get(number)
      if (nodes) nodes.push(dictionary)
      else this.nodes.set(number, [dictionary])
    }
    return dictionary
  }

  #dictionary(bytes: Buffer, at: number): Dictionary {
    const dictionary = new Dictionary(bytes, at)
    spend(this.#budget, 'parsed', dictionary.end - at)
    if (dictionary.isEmpty) return dictionary
    if (dictionary.has(KEY.Pages)) this.trees.add(referenceAt(bytes, dictionary.at(KEY.Pages)))
    // One that stands here would be an object without a number.
    if (dictionary.has(KEY.Root)) referenceAt(bytes, dictionary.at(KEY.Root))
    if (dictionary.has(KEY.Encrypt)) this.#isEncrypted = true
    if (dictionary.has(KEY.Linearized)) {
      this.linearized = Math.max(this.linearized, integerAt(bytes, dictionary.at(KEY.N)))
    }
    return dictionary
  }

  /** Objects in a stream, whatever type it says that it has. */
  #packed(dictionary: Dictionary) {
    const stream = this.#streams.read(dictionary)
    if (!stream) return
    this.#hasPacked = true
    if (dictionary.has(KEY.DecodeParms)) throw new Unclear('stream')
    const first = integerAt(dictionary.bytes, dictionary.at(KEY.First))
    const count = integerAt(dictionary.bytes, dictionary.at(KEY.N))
    if (count > this.#budget.objects) throw new Unclear('beyond the budget')
    const { values } = integersAt(stream, 0, 2 * count)
    if (values.length < 2 * count) throw new Unclear('objects')
    for (let index = 0; index < values.length; index += 2) {
      this.#add(values[index]!, stream, first + values[index + 1]!)
    }
  }
}
