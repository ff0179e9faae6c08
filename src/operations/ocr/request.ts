/** The canonical request and answer of `POST /v1/ocr` (docs/contract.md#ocr). */
import { type Infer, type Schema, s } from '../../core/schema.ts'

/** Its form is checked by `assertDocumentUrl`. */
const url = s.string()
const flag = s.maybe(s.boolean())
const count = s.maybe(s.integer({ minimum: 0 }))
const format = s.maybe(s.open({ type: s.string() }))
/** A list of page numbers, or ranges such as `0-4,7`. */
const pages: Schema<string | number[]> = {
  json: {
    type: ['array', 'string'],
    items: { type: 'integer', minimum: 0 },
    minItems: 1,
    maxItems: 10_000,
    maxLength: 10_000,
  },
}

const document = s.tagged(
  s.open({
    type: s.enum('document_url'),
    document_url: url,
    document_name: s.maybe(s.string({ maxLength: 256 })),
  }),
  s.open({ type: s.enum('image_url'), image_url: s.either(url, s.open({ url })) }),
)

/** As clients send it (Mistral's OCR API). */
export const ocrBody = s.open({
  model: s.string({ minLength: 1, maxLength: 256 }),
  document,
  pages: s.maybe(pages),
  include_image_base64: flag,
  extract_header: flag,
  extract_footer: flag,
  include_blocks: flag,
  image_limit: count,
  image_min_size: count,
  bbox_annotation_format: format,
  document_annotation_format: format,
  document_annotation_prompt: s.maybe(s.string()),
  table_format: s.maybe(s.enum('markdown', 'html')),
  confidence_scores_granularity: s.maybe(s.enum('word', 'page', 'block')),
})

/** As the body, without what is unknown or null. */
export type OcrRequest = Infer<typeof ocrBody>

/** The value of an ocr `result`: what the provider says, beside what the gateway counts. */
export interface OcrResult {
  readonly pages: readonly unknown[]
  readonly document_annotation: unknown
  readonly usage_info: { readonly pages_processed: number; readonly doc_size_bytes: number | null }
}

/** The address or data URL of the document. */
export const addressOf = ({ document }: Pick<OcrRequest, 'document'>): string =>
  document.type === 'document_url'
    ? document.document_url
    : typeof document.image_url === 'string'
      ? document.image_url
      : document.image_url.url

/** Counts the pages in `0-4,7` or in a list; undefined for an empty range such as `5-2`. */
export function pageCount(pages: string | readonly number[]): number | undefined {
  if (typeof pages !== 'string') return new Set(pages).size
  let sum = 0
  for (const range of pages.split(',')) {
    const [, first, last = first] = /^\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?$/.exec(range) ?? []
    const length = Number(last) - Number(first) + 1
    if (!(length > 0)) return undefined
    sum += length
  }
  return sum
}

/** Annotated pages have a price of their own. */
export const isAnnotated = (request: Readonly<OcrRequest>): boolean =>
  request.bbox_annotation_format != null || request.document_annotation_format != null

declare module '../../core/ops.ts' {
  interface Ops {
    ocr: OcrRequest
  }
}
