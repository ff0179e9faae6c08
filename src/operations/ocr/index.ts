/** OCR: `POST /v1/ocr` (docs/contract.md#ocr). */
import type { Operation, Simulation } from '../../core/operation.ts'
import { perObject } from '../../lib/per-object.ts'
import { pdfPages } from '../../media/pages.ts'
import { Base64File, MEDIA_BUDGET } from '../../media/source.ts'
import { holdsPdf, MEDIA_HEAD_BYTES } from '../../media/type.ts'
import { withoutSpace } from '../../wire/wire.ts'
import { addressOf, isAnnotated, type OcrRequest, pageCount } from './request.ts'

/** Simulates Mistral's OCR API: one page that says how large the document is. */
const demo: Readonly<Record<string, Simulation>> = {
  '/ocr'({ json }) {
    const request = json as OcrRequest
    const { length } = addressOf(request)
    const page = {
      index: 0,
      markdown: `# Simulated\n\nThe demo provider read a document of ${length} characters.`,
      images: [],
      dimensions: { dpi: 200, height: 2200, width: 1700 },
    }
    const usage_info = { pages_processed: 1, doc_size_bytes: length }
    return { json: { pages: [page], model: request.model, document_annotation: null, usage_info } }
  },
}

/** Usual bytes of a page, and the maximum pages of a document that is known only by its address. */
const PAGE_BYTES = 50_000
const MAX_PAGES = 1000
const UNKNOWN_PAGES = 10

/** Priced by the page; a page with annotations has a price of its own. */
export const ocr: Operation<'ocr'> = {
  name: 'ocr',
  impliedBy: () => false,
  isPriced: ({ rates }) => rates.ocr_page !== undefined,
  requirements: [],
  promptSize: () => 0,
  extras: request => ({ [axisOf(request)]: pagesOf(request) }),
  unmeasured(request) {
    const { document, pages } = request
    if (pages != null || document.type === 'image_url' || measured(document).pages) return undefined
    return { [axisOf(request)]: MAX_PAGES - pagesOf(request) }
  },
  tuning: {},
  demo,
}

const axisOf = (request: Readonly<OcrRequest>) => (isAnnotated(request) ? 'ocr_page_annotated' : 'ocr_page')

/** As many as are asked for, else as the document has, or is likely to have. */
function pagesOf(request: Readonly<OcrRequest>): number {
  if (request.pages != null) return pageCount(request.pages) ?? 1
  return Math.max(likelyPages(request), Math.min(MAX_PAGES, measured(request.document).pages ?? 0))
}

/** Counts the pages of an inline PDF; 0 for anything else, undefined when they cannot be found. */
const measured = perObject((document: OcrRequest['document']) => ({ pages: pagesIn(addressOf({ document })) }))

function likelyPages(request: Readonly<OcrRequest>): number {
  if (request.document.type === 'image_url') return 1
  const address = addressOf(request)
  if (!isData(address)) return UNKNOWN_PAGES
  return Math.max(1, Math.min(MAX_PAGES, Math.ceil((address.length * 3) / 4 / PAGE_BYTES)))
}

const isData = (address: string): boolean => /^data:/i.test(address)

function pagesIn(address: string): number | undefined {
  if (!isData(address)) return 0
  const file = new Base64File(withoutSpace(address.slice(address.indexOf(',') + 1)))
  return holdsPdf(file.read(0, MEDIA_HEAD_BYTES)) ? pdfPages(file, { ...MEDIA_BUDGET }) : 0
}
