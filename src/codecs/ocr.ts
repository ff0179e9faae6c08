/** Client wire of `POST /v1/ocr`, in Mistral's form (media.md section 7). */
import type { Codec } from '../core/codec.ts'
import { errorBody, errors } from '../core/error.ts'
import type { Exchange } from '../core/exchange.ts'
import { addressOf, type OcrRequest, ocrBody, pageCount, type Read } from '../operations/ocr/request.ts'
import { answerModelOf } from './accounting.ts'
import { assertDocumentUrl } from './url.ts'
import { validator } from './validate.ts'
import { WholeEncoder } from './whole.ts'

const validate = validator(ocrBody)

export const ocr = {
  wire: 'mistral.ocr',
  decode(body): OcrRequest {
    const request = validate(body)
    const { document, pages } = request
    const isNested = document.type === 'image_url' && typeof document.image_url !== 'string'
    assertDocumentUrl(addressOf(request), `document.${document.type}${isNested ? '.url' : ''}`)
    if (pages != null && pageCount(pages) === undefined) {
      throw errors.invalidParameters('pages: must be a list of page numbers or ranges such as "0-4,7"', 'pages')
    }
    return Object.fromEntries(knownOf(request).filter(([, value]) => value != null)) as unknown as OcrRequest
  },
  encoder: ex => new WholeEncoder<Read>(ex, written),
  error: errorBody,
  prepare: validate.prepare,
} satisfies Codec<'ocr'>

const KNOWN = Object.keys(ocrBody.json.properties as object)
const knownOf = (request: OcrRequest): [string, unknown][] =>
  Object.entries(request).filter(([name]) => KNOWN.includes(name))

const written = (read: Read, ex: Exchange): object => ({ ...read, model: answerModelOf(ex) })
