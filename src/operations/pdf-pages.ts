/** Counts the pages of a PDF (ISO 32000-2 sections 7.5.7 and 7.7.3), without reading any of them. */
import { inflateSync } from 'node:zlib'

/** What may still be looked at, in bytes and in places; shared by several files. */
export interface PdfBudget {
  read: number
  inflated: number
  /** Numbers that may be those of trees, and streams of objects. */
  counts: number
  streams: number
}

/** Of one request. The size of a larger file says enough. */
export const PDF_BUDGET: Readonly<PdfBudget> = {
  read: 4 * 1024 * 1024,
  inflated: 8 * 1024 * 1024,
  counts: 4096,
  streams: 512,
}

/** A header may stand behind other bytes. */
export const PDF_HEAD = 1024
/** Characters of a stream's dictionary before its type, and behind it. */
const MAX_DICTIONARY = 2048
const COUNT = '/Count'
const OBJECTS = '/ObjStm'
const STREAM = 'stream'

/** By its first bytes. */
export const isPdf = (head: Buffer): boolean => head.subarray(0, PDF_HEAD).includes('%PDF-')

/**
 * Pages of the largest tree; undefined where some of the file cannot be looked into. Readers take
 * this number from the root of the tree.
 */
export function pdfPages(bytes: Buffer, budget: PdfBudget): number | undefined {
  if (bytes.length > budget.read) return undefined
  budget.read -= bytes.length
  let most = countIn(bytes, budget)
  for (const at of placesOf(bytes, OBJECTS, budget, 'streams')) {
    if (most === undefined) return undefined
    const objects = inflated(bytes, at, budget)
    const count = objects && countIn(objects, budget)
    most = count === undefined ? undefined : Math.max(most, count)
  }
  return most || undefined
}

/** The largest number of a tree; 0 where there is no tree. Undefined for one that stands elsewhere. */
function countIn(bytes: Buffer, budget: PdfBudget): number | undefined {
  let most = 0
  for (const at of placesOf(bytes, COUNT, budget, 'counts')) {
    const said = bytes.toString('latin1', at + COUNT.length, at + COUNT.length + 32)
    const [, count, elsewhere] = /^\s+(\d{1,7})(?!\d)(\s+\d+\s+R)?/.exec(said) ?? []
    if (elsewhere !== undefined || at < 0) return undefined
    if (count !== undefined && Number(count) > most && !isOutline(bytes, at)) most = Number(count)
  }
  return most
}

/** The outline of a document, and each part of it, has a number as well, which may be larger than that of the pages. */
const OUTLINE = /\/(?:Outlines|First|Last|Title)\b/

/** Whether the dictionary around `at` is one of an outline: a tree of pages says that it is one. */
function isOutline(bytes: Buffer, at: number): boolean {
  const before = bytes.toString('latin1', Math.max(0, at - MAX_DICTIONARY), at)
  const behind = bytes.toString('latin1', at, at + MAX_DICTIONARY)
  const dictionary = before.slice(before.lastIndexOf('<<') + 1) + behind.slice(0, Math.max(0, behind.indexOf('>>')))
  return OUTLINE.test(dictionary) && !dictionary.includes('/Pages')
}

/** The bytes of a stream of objects whose type stands at `at`; undefined for one in another form, or beyond the budget. */
function inflated(bytes: Buffer, at: number, budget: PdfBudget): Buffer | undefined {
  if (at < 0 || budget.inflated === 0) return undefined
  const begin = bytes.subarray(at, at + MAX_DICTIONARY).indexOf(STREAM)
  if (begin < 0) return undefined
  const before = bytes.toString('latin1', Math.max(0, at - MAX_DICTIONARY), at)
  const dictionary = before.slice(before.lastIndexOf('obj') + 1) + bytes.toString('latin1', at, at + begin)
  const filters = dictionary.split('Decode')
  // Without a filter its objects stand in the file itself.
  if (filters.length === 1) return Buffer.alloc(0)
  if (filters.length > 2 || !filters[0]!.endsWith('/Flate')) return undefined
  let first = at + begin + STREAM.length
  if (bytes[first] === 0x0d) first++
  if (bytes[first] === 0x0a) first++
  try {
    const objects = inflateSync(bytes.subarray(first), { maxOutputLength: budget.inflated })
    budget.inflated -= objects.length
    return objects
  } catch {
    // What it holds may have taken all of it.
    budget.inflated = 0
    return undefined
  }
}

/** Where `name` stands; -1 in the end where it does too often. */
function* placesOf(bytes: Buffer, name: string, budget: PdfBudget, kind: 'counts' | 'streams'): Generator<number> {
  for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name, at + name.length)) {
    if (--budget[kind] < 0) {
      yield -1
      return
    }
    yield at
  }
}
