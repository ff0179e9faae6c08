/** Client wires of `POST /v1/images/generations` and `/v1/images/edits` (docs/contract.md#images). */
import type { Codec } from '../core/codec.ts'
import type { Exchange } from '../core/exchange.ts'
import {
  type ImageBody,
  type ImageEditBody,
  type ImageEditRequest,
  type ImageRequest,
  imageBody,
  imageEditBody,
} from '../operations/images/request.ts'
import { typedHeartbeat } from './event-stream.ts'
import { editFrom } from './image-inputs.ts'
import { StreamedImages, wholeImages } from './images-encoder.ts'
import { checkedBy, validator } from './validate.ts'
import { CostedEncoder } from './whole.ts'

const validate = validator(imageBody)
const validateEdit = validator(imageEditBody)

/** A JSON body; an absent model is `auto`. */
export const images = {
  wire: 'openai.images',
  decode: (body, ex) => canonical(validate(body), ex),
  encoder: ex => (ex.streaming ? new StreamedImages(ex, 'image_generation') : new CostedEncoder(ex, wholeImages)),
  heartbeat: typedHeartbeat,
  ...checkedBy(validate),
} satisfies Codec<'images'>

/** A JSON body or a form, with files or addresses of images. */
export const imageEdits = {
  wire: 'openai.image-edits',
  decode: (body, ex) => canonicalEdit(body, ex),
  encoder: ex => (ex.streaming ? new StreamedImages(ex, 'image_edit') : new CostedEncoder(ex, wholeImages)),
  heartbeat: typedHeartbeat,
  ...checkedBy(validateEdit),
} satisfies Codec<'image_edits'>

function canonical(body: ImageBody | Omit<ImageEditBody, 'images'>, { caller: { principal } }: Exchange): ImageRequest {
  const { size, style } = body as ImageBody
  return {
    model: body.model ?? 'auto',
    prompt: body.prompt,
    n: body.n ?? 1,
    size: size == null || size === 'auto' ? undefined : size.replace('k', 'K'),
    aspect_ratio: body.aspect_ratio ?? undefined,
    quality: body.quality ?? undefined,
    style: style ?? undefined,
    moderation: body.moderation ?? undefined,
    service_tier: body.service_tier ?? undefined,
    background: body.background ?? undefined,
    output_format: body.output_format ?? undefined,
    output_compression: body.output_compression ?? undefined,
    stream: body.stream ?? false,
    partial_images: body.partial_images ?? undefined,
    user: principal?.orgId,
  }
}

function canonicalEdit(given: unknown, ex: Exchange): ImageEditRequest {
  const { body, images, mask } = editFrom(given, validateEdit, ex)
  return {
    ...canonical(body, ex),
    images,
    mask,
    input_fidelity: body.input_fidelity ?? undefined,
  }
}
