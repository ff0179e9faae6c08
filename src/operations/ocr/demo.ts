/** The simulated provider's reading, in Mistral's form: one page that says how large the document is. */
import type { Simulation } from '../../core/operation.ts'
import { addressOf, type OcrRequest } from './request.ts'

/** The path of Mistral's OCR API. */
export const demo: Readonly<Record<string, Simulation>> = {
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
