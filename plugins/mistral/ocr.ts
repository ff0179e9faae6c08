/** Mistral's OCR wire, `mistral.ocr` (docs/contributing/wire-sources.md#mistral), whose form clients speak too. */
import {
  countIn,
  errors,
  isAnnotated,
  isObject,
  type Json,
  type OcrRequest,
  type OcrResult,
  objectIn,
  type Target,
  type Translator,
} from '../../src/plugin.ts'
import { errorIn, parsed, plainError, WholeDecoder } from '../shared/answer.ts'

/** Mistral's OCR API, `POST /ocr`; the canonical request is its body. */
export const ocr: Translator<'ocr'> = {
  op: 'ocr',
  wire: 'mistral.ocr',
  encode: (request, { mapping }) => ({ path: '/ocr', body: { ...request, model: mapping.externalId } }),
  decoder: (_mode, target, input) => new WholeDecoder(frame => read(parsed(frame), target, input!)),
  error: plainError,
}

/** No document that is read has more. */
const MAX_PAGES = 10_000

/** Reads the answer; fields that the provider adds are passed on. */
function read(answer: unknown, target: Target, input: Readonly<OcrRequest>): ReturnType<WholeDecoder['frame']> {
  const pages = objectIn(answer).pages
  if (!Array.isArray(pages)) throw errorIn(answer, 'list of pages', target)
  if (!pages.every(isObject)) throw errors.invalidAnswer('a page is not an object')
  const { usage_info, document_annotation } = answer as Json
  const { pages_processed: processed, doc_size_bytes: size } = objectIn(usage_info)
  const reported = Number.isSafeInteger(processed) ? Number(processed) : 0
  const count = reported > 0 && reported <= MAX_PAGES ? reported : pages.length
  const value: OcrResult = {
    ...(answer as Json),
    pages,
    document_annotation: document_annotation ?? null,
    usage_info: { pages_processed: count, doc_size_bytes: countIn(size) ?? null },
  }
  return [
    { type: 'usage', usage: { [isAnnotated(input) ? 'ocr_page_annotated' : 'ocr_page']: count } },
    { type: 'result', value },
  ]
}
