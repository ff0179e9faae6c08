/** How much of PDFs is looked at, and what ends that. */

/** What may still be looked at, in bytes and in places; shared by several files. */
export interface PdfBudget {
  read: number
  /** Of streams, as they stand in the file: a stream that gives nothing takes longest. */
  packed: number
  inflated: number
  /** Of these, what may be more than streams that are packed as usual become. */
  unusual: number
  /** Bytes of objects: each once in an honest file. */
  parsed: number
  /** Objects, streams of objects and tables, and numbers of objects in tables and trees. */
  objects: number
  streams: number
  references: number
}

/** Of one request. The size of a larger file says enough. */
export const PDF_BUDGET: Readonly<PdfBudget> = {
  read: 4 * 1024 * 1024,
  packed: 256 * 1024,
  inflated: 4 * 1024 * 1024,
  unusual: 64 * 1024,
  parsed: 8 * 1024 * 1024,
  objects: 65_536,
  streams: 256,
  references: 131_072,
}

/** The file is beyond the budget, or is read in different ways. */
export class Unclear extends Error {}

/** Throws {@link Unclear} where less is left. */
export function spend(budget: PdfBudget, of: 'parsed' | 'objects' | 'streams' | 'references', amount: number): void {
  budget[of] -= amount
  if (budget[of] < 0) throw new Unclear('beyond the budget')
}
