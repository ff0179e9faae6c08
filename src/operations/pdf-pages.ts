/** Counts the pages of a PDF (ISO 32000-2 sections 7.5.7 and 7.7.3), without reading any of them. */
import { inflateSync } from 'node:zlib'

/** What may still be looked at, in bytes and in places; shared by several files. */
export interface PdfBudget {
  read: number
  /** Of streams of objects, as they stand in the file: a stream that gives nothing takes longest. */
  packed: number
  inflated: number
  /** Of these, what may be more than streams that are packed as usual become. */
  unusual: number
  /** Numbers that may be those of trees, the dictionaries around them, and streams of objects. */
  counts: number
  dictionaries: number
  streams: number
}

/** Of one request. The size of a larger file says enough. */
export const PDF_BUDGET: Readonly<PdfBudget> = {
  read: 4 * 1024 * 1024,
  packed: 256 * 1024,
  inflated: 4 * 1024 * 1024,
  unusual: 64 * 1024,
  counts: 4096,
  dictionaries: 512,
  streams: 256,
}

/** Bytes that a packed one becomes at most, in streams as writers make them. */
const USUAL_RATIO = 32
/** A header may stand behind other bytes. */
export const PDF_HEAD = 1024
/** Characters of a stream's dictionary before its type, and behind it. */
const MAX_DICTIONARY = 2048
const COUNT = '/Count'
/** Characters of a number, and of what says that it stands elsewhere. */
const MAX_NUMBER = 32
const STREAM = 'stream'
const END = 'endstream'
/** All at once: `indexOf` takes six times as long where each byte of a file may begin a name. */
const NAMES = /\/(?:Count|ObjStm)/g

/** By its first bytes. */
export const isPdf = (head: Buffer): boolean => head.subarray(0, PDF_HEAD).includes('%PDF-')

/**
 * Pages of the largest tree; undefined where some of the file cannot be looked into. Readers take
 * this number from the root of the tree.
 */
export function pdfPages(bytes: Buffer, budget: PdfBudget): number | undefined {
  if (bytes.length > budget.read) return undefined
  budget.read -= bytes.length
  const text = bytes.toString('latin1')
  const places = placesIn(text, budget)
  if (!places) return undefined
  let most = largestOf(text, places.counts, budget, 0)
  for (const packed of packedObjects(text, places.streams)) {
    if (most === undefined || !packed) return undefined
    most = largestInside(bytes.subarray(packed.first, packed.end), budget, most)
  }
  return most || undefined
}

/** Where a file, or what was packed in it, has numbers and streams; undefined beyond the budget. */
function placesIn(text: string, budget: PdfBudget): { counts: number[]; streams: number[] } | undefined {
  const places = { counts: [] as number[], streams: [] as number[] }
  for (const { 0: name, index } of text.matchAll(NAMES)) {
    const kind = name === COUNT ? 'counts' : 'streams'
    if (--budget[kind] < 0) return undefined
    places[kind].push(index)
  }
  return places
}

/** The largest number of a tree, at least `known`. Undefined for one that stands elsewhere, and beyond the budget. */
function largestOf(text: string, places: readonly number[], budget: PdfBudget, known: number): number | undefined {
  const larger: { at: number; count: number }[] = []
  for (const at of places) {
    const said = text.slice(at + COUNT.length, at + COUNT.length + MAX_NUMBER)
    const [, digits = '0', elsewhere] = /^\s+(\d{1,7})(?!\d)(\s+\d+\s+R)?/.exec(said) ?? []
    if (elsewhere !== undefined) return undefined
    if (Number(digits) > known) larger.push({ at, count: Number(digits) })
  }
  // The first that is no outline's is the one, so that few dictionaries are read.
  larger.sort((a, b) => b.count - a.count)
  for (const { at, count } of larger) {
    if (--budget.dictionaries < 0) return undefined
    if (!isOutline(text, at)) return count
  }
  return known
}

/** The same of the objects that are deflated in `packed`. */
function largestInside(packed: Buffer, budget: PdfBudget, known: number): number | undefined {
  const objects = inflated(packed, budget)
  if (objects === undefined) return undefined
  const places = placesIn(objects, budget)
  return places && largestOf(objects, places.counts, budget, known)
}

/** The outline of a document, and each part of it, has a number as well, which may be larger than that of the pages. */
const OUTLINE = /\/(?:Outlines|First|Last|Title)\b/

/** Whether the dictionary around `at` is one of an outline: a tree of pages says that it is one. */
function isOutline(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - MAX_DICTIONARY), at)
  const behind = text.slice(at, at + MAX_DICTIONARY)
  const dictionary = before.slice(before.lastIndexOf('<<') + 1) + behind.slice(0, Math.max(0, behind.indexOf('>>')))
  return OUTLINE.test(dictionary) && !dictionary.includes('/Pages')
}

/** Where streams of objects begin and end, each once; undefined in the place of one in another form. */
function* packedObjects(
  text: string,
  places: readonly number[],
): Generator<{ first: number; end: number } | undefined> {
  let last = 0
  let end = 0
  for (const at of places) {
    const begin = at + text.slice(at, at + MAX_DICTIONARY).indexOf(STREAM)
    // Several places may stand before one stream.
    if (begin === last) continue
    last = begin
    const isPacked = begin < at ? undefined : isDeflated(text, at, begin)
    // Without a filter its objects stand in the file itself.
    if (isPacked === false) continue
    const first =
      begin + STREAM.length + /^\r?\n?/.exec(text.slice(begin + STREAM.length, begin + STREAM.length + 2))![0].length
    // Places ascend: the end that was found is the next one of all before it.
    if (end < first) end = endBehind(text, first)
    yield isPacked && { first, end }
  }
}

function endBehind(text: string, first: number): number {
  const end = text.indexOf(END, first)
  return end < 0 ? text.length : end
}

/** Whether the stream at `begin`, whose type stands at `at`, is deflated; undefined for one in another form. */
function isDeflated(text: string, at: number, begin: number): boolean | undefined {
  const before = text.slice(Math.max(0, at - MAX_DICTIONARY), at)
  const filters = (before.slice(before.lastIndexOf('obj') + 1) + text.slice(at, begin)).split('Decode')
  if (filters.length === 1) return false
  return filters.length === 2 && filters[0]!.endsWith('/Flate') ? true : undefined
}

/** The objects of a stream; undefined where it is none, or beyond the budget. */
function inflated(packed: Buffer, budget: PdfBudget): string | undefined {
  const usual = USUAL_RATIO * packed.length
  const most = Math.min(budget.inflated, usual + budget.unusual)
  if (packed.length > budget.packed || most === 0) return undefined
  budget.packed -= packed.length
  // What is none may become all of it before that is found.
  let became = most
  try {
    const objects = inflateSync(packed, { maxOutputLength: most })
    became = objects.length
    return objects.toString('latin1')
  } catch {
    return undefined
  } finally {
    budget.inflated -= became
    budget.unusual -= Math.max(0, became - usual)
  }
}
