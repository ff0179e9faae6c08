/** `POST /v1/images/generations` and `/v1/images/edits`. */
import { imageEdits as editsCodec, images as imagesCodec } from '../codecs/images.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { imageEdits, images as imagesOperation } from '../operations/images/index.ts'

const row = { name: 'images', method: 'POST', chain: 'inference', serve: 'upstream' } as const

/** OpenAI's image generation and edits; edits are JSON or a form. */
export const images: readonly Endpoint[] = [
  {
    ...row,
    path: '/v1/images/generations',
    operation: imagesOperation,
    codec: imagesCodec,
    bodyLimit: 32 * 1024 * 1024,
  },
  {
    ...row,
    path: '/v1/images/edits',
    operation: imageEdits,
    codec: editsCodec,
    body: ['json', 'multipart'],
    bodyLimit: 64 * 1024 * 1024,
  },
]
