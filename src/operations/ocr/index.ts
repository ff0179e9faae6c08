/** OCR: `POST /v1/ocr` (docs/contract.md#ocr). */
import type { Operation } from '../../core/operation.ts'
import { demo } from './demo.ts'
import { addressOf, isAnnotated, type OcrRequest, pageCount } from './request.ts'

/** What a page of a document that comes along takes, and how many one may have whose address alone is known. */
const PAGE_BYTES = 50_000
const MAX_PAGES = 1000
const UNKNOWN_PAGES = 10

/** Priced by the page; a page with annotations has a price of its own. */
export const ocr: Operation<'ocr'> = {
  name: 'ocr',
  impliedBy: () => false,
  isPriced: ({ rates }) => rates.ocr_page !== undefined,
  requirements: [],
  promptCharacters: () => 0,
  extras: request => ({ [isAnnotated(request) ? 'ocr_page_annotated' : 'ocr_page']: pagesOf(request) }),
  tuning: {},
  demo,
}

/** As many as are asked for, else as the document is likely to have. */
function pagesOf(request: Readonly<OcrRequest>): number {
  if (request.pages != null) return pageCount(request.pages) ?? 1
  if (request.document.type === 'image_url') return 1
  const address = addressOf(request)
  if (!/^data:/i.test(address)) return UNKNOWN_PAGES
  return Math.max(1, Math.min(MAX_PAGES, Math.ceil((address.length * 3) / 4 / PAGE_BYTES)))
}
