/** Client wire of `POST /v1/ocr`, in Mistral's form (docs/contract.md#ocr). */
import type { Codec } from '../core/codec.ts'
import type { Exchange } from '../core/exchange.ts'
import { errors } from '../lib/error.ts'
import { addressOf, type OcrRequest, type OcrResult, ocrBody, pageCount } from '../operations/ocr/request.ts'
import { answerModelOf } from './accounting.ts'
import { assertDocumentUrl } from './url.ts'
import { checkedBy, validator } from './validate.ts'
import { WholeEncoder } from './whole.ts'

const validate = validator(ocrBody)

/** Keeps known fields only. */
export const ocr = {
  wire: 'mistral.ocr',
  decode(body): OcrRequest {
    const request = validate(body)
    const { document, pages } = request
    const isNested = document.type === 'image_url' && typeof document.image_url !== 'string'
    assertDocumentUrl(addressOf(request), `document.${document.type}${isNested ? '.url' : ''}`)
    if (pages != null && pageCount(pages) === undefined) {
      throw errors.invalidField('pages', 'must be a list of page numbers or ranges such as "0-4,7"')
    }
    const given = Object.entries(request).filter(([name, value]) => KNOWN.has(name) && value != null)
    return { ...Object.fromEntries(given), model: request.model, document: known(document) }
  },
  encoder: ex => new WholeEncoder<OcrResult>(ex, written),
  ...checkedBy(validate),
} satisfies Codec<'ocr'>

const KNOWN = new Set(Object.keys(ocrBody.json.properties as object))

function known(document: OcrRequest['document']): OcrRequest['document'] {
  const { type } = document
  if (type === 'image_url') {
    const { image_url } = document
    return { type, image_url: typeof image_url === 'string' ? image_url : { url: image_url.url } }
  }
  const { document_url, document_name } = document
  return document_name == null ? { type, document_url } : { type, document_url, document_name }
}

const written = (read: OcrResult, ex: Exchange): object => ({ ...read, model: answerModelOf(ex) })
