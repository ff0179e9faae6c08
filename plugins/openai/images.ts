/** OpenAI's images wires, `openai.images` and `openai.image-edits` (docs/contract.md#image-wires). */
import {
  aspectOf,
  type ImageEditRequest,
  type ImageRequest,
  imageFanOut,
  imageSizeOf,
  type Json,
  levelOf,
  nearestAspect,
  type Target,
  type Translator,
  type WireRequest,
} from '../../src/plugin.ts'
import { plainError } from '../shared/answer.ts'
import { fileOf, pixelsFor } from '../shared/images/inputs.ts'
import { openAiImages } from '../shared/images/openai-form.ts'

/** These answer with base64 only, and reject the parameter for it. */
const GPT_IMAGE = /^(?:chat)?gpt-image/
/** These take any size whose sides are multiples of 16. */
const ANY_SIZE = /^gpt-image-2/
const SIZES: readonly string[] = ['1024x1024', '1536x1024', '1024x1536']
/** Pixels of an image of which only the proportions are given. */
const DEFAULT_PIXELS = 1_500_000
const SIDE_STEP_PX = 16

/** All but one model make ten. */
const mostOf = (id: string): number => (id.startsWith('dall-e-3') ? 1 : 10)

const common = { fanOut: imageFanOut(mostOf), decoder: openAiImages, error: plainError }

/** OpenAI's "Create image" API, `POST /images/generations`. */
export const images: Translator<'images'> = {
  op: 'images',
  wire: 'openai.images',
  ...common,
  encode(request, target, stream) {
    const { externalId: id } = target.mapping
    const style = id.startsWith('dall-e-3') ? request.style : undefined
    return { path: '/images/generations', body: { ...fieldsOf(request, target, stream), ...(style && { style }) } }
  },
}

/** OpenAI's "Create image edit" API, `POST /images/edits`, as a form. */
export const imageEdits: Translator<'image_edits'> = {
  op: 'image_edits',
  wire: 'openai.image-edits',
  ...common,
  inlineMedia: true,
  encode: encodeEdit,
}

function encodeEdit(request: Readonly<ImageEditRequest>, target: Target, stream: boolean): WireRequest {
  const { images, mask, input_fidelity } = request
  const name = images.length === 1 ? 'image' : 'image[]'
  const files = images.map((image, index) => fileOf(image, name, `image-${index}`))
  if (mask) files.push(fileOf(mask, 'mask', 'mask'))
  const body = { ...fieldsOf(request, target, stream), ...(input_fidelity && { input_fidelity }) }
  return { path: '/images/edits', body, files }
}

function fieldsOf(request: Readonly<ImageRequest>, { mapping }: Target, stream: boolean): Json {
  const { externalId: model } = mapping
  const isGpt = GPT_IMAGE.test(model)
  const body: Json = { model, prompt: request.prompt, n: request.n }
  const size = sizeFor(request, model, mapping.sizes)
  if (size !== undefined) body.size = size
  const quality = isGpt ? levelOf(request.quality) : request.quality
  if (quality != null) body.quality = quality
  if (!isGpt) body.response_format = 'b64_json'
  for (const name of ['background', 'moderation', 'output_format', 'output_compression', 'user'] as const) {
    if (request[name] !== undefined) body[name] = request[name]
  }
  if (request.service_tier === 'flex' || request.service_tier === 'priority') body.service_tier = request.service_tier
  if (stream) {
    body.stream = true
    if (request.partial_images !== undefined) body.partial_images = request.partial_images
  }
  return body
}

/** The wire has sizes only: proportions become the nearest one. */
function sizeFor({ size, aspect_ratio: ratio }: Readonly<ImageRequest>, id: string, sizes = SIZES): string | undefined {
  const aspect = ratio === undefined ? undefined : aspectOf(ratio, undefined)
  if (aspect === undefined) return size !== undefined && imageSizeOf(size) === undefined ? classSize(size, sizes) : size
  if (sizes !== SIZES || !ANY_SIZE.test(id)) return nearestAspect(sizes, aspect)
  const { width, height } = pixelsFor(aspect, DEFAULT_PIXELS, SIDE_STEP_PX)
  return `${width}x${height}`
}

/** A class that no list holds is sent as it is; the smallest ones become the usual square. */
const classSize = (size: string, sizes: readonly string[]): string =>
  sizes.includes(size) || !/^(?:512|1K)$/.test(size) ? size : SIZES[0]!
