/** Counts the pages of a PDF by the largest `/Count` of its trees of pages (ISO 32000-2 section 7.7.3). */
import { type MediaBudget, type MediaFile, spend } from './source.ts'

/** Bytes that are searched from the begin, and as many at the end: trees of pages stand near either. */
const SEARCH_BYTES = 512 * 1024
/** Work for each of these bytes. */
const BYTE_WORK = 0.05
/** Files with more pages do not exist. */
const COUNT = /\/Count\s+(\d{1,6})\b/g

/** Undefined where no number is found: it may be compressed. */
export function pdfPages(file: MediaFile, budget: MediaBudget): number | undefined {
  if (!spend(budget, BYTE_WORK * Math.min(file.size, 2 * SEARCH_BYTES))) return undefined
  const most = Math.max(
    countIn(file.read(0, SEARCH_BYTES)),
    countIn(file.read(Math.max(SEARCH_BYTES, file.size - SEARCH_BYTES), SEARCH_BYTES)),
  )
  return most > 0 ? most : undefined
}

function countIn(bytes: Buffer): number {
  let most = 0
  for (const [, count] of bytes.toString('latin1').matchAll(COUNT)) most = Math.max(most, Number(count))
  return most
}
