/** `POST /v1/ocr`. */
import { ocr as codec } from '../codecs/ocr.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { ocr as operation } from '../operations/ocr/index.ts'

/** Mistral's OCR of documents. */
export const ocr: Endpoint = {
  name: 'ocr',
  method: 'POST',
  path: '/v1/ocr',
  chain: 'inference',
  operation,
  codec,
  serve: 'upstream',
  bodyLimit: 64 * 1024 * 1024,
}
