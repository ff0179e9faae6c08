/** The wires `bfl.images` and `bfl.image-edits`: a job that is polled (docs/contributing/wire-sources.md#black-forest-labs). */
import {
  errors,
  type FoundImages,
  type Frame,
  type ImageEditRequest,
  type ImageRequest,
  ImagesDecoder,
  imageFanOut,
  imageSizeOf,
  isObject,
  type Json,
  type Plugin,
  pathSegment,
  type Target,
  type Translator,
  textIn,
  type UnfinishedJob,
  urlOf,
} from '../src/plugin.ts'
import { errorIn, parsed, plainError } from './shared/answer.ts'
import { base64Of, ratioFor } from './shared/images/inputs.ts'

const RATIOS = ['21:9', '16:9', '3:2', '4:3', '5:4', '1:1', '4:5', '3:4', '2:3', '9:16', '9:21']
/** Models whose images have any size; the others have proportions. */
const HAS_SIZES = /^flux-(?:2-|dev$|pro-1\.1$)/
const SIDE_STEP_PX = 32
/** The only models that take a mask. */
const FILLS = /fill/
const MAX_IMAGES = 8
const FIRST_WAIT_MS = 500
const WAIT_FACTOR = 1.3
const MAX_WAIT_MS = 3_000

function fieldsOf(request: Readonly<ImageRequest>, { mapping: { externalId: id } }: Target): Json {
  const { prompt, size, aspect_ratio: given, output_format } = request
  const pixels = given === undefined && HAS_SIZES.test(id) ? imageSizeOf(size) : undefined
  const aspect_ratio = pixels ? undefined : ratioFor(request, RATIOS)
  const side = (length: number) => Math.max(SIDE_STEP_PX, Math.round(length / SIDE_STEP_PX) * SIDE_STEP_PX)
  return {
    prompt,
    ...(pixels && { width: side(pixels.width), height: side(pixels.height) }),
    ...(aspect_ratio !== undefined && { aspect_ratio }),
    ...(output_format !== undefined && { output_format }),
  }
}

function imagesOf({ images, mask }: Readonly<ImageEditRequest>, id: string): Json {
  if (FILLS.test(id)) return { image: base64Of(images[0]!), ...(mask && { mask: base64Of(mask) }) }
  if (mask) throw errors.unsupported(`"${id}" takes no mask.`, 'mask')
  return Object.fromEntries(
    images.map((image, index) => [index === 0 ? 'input_image' : `input_image_${index + 1}`, base64Of(image)]),
  )
}

/** Made once for each job, since only the first answer has the address of its states. */
function reader(target: Target): (frame: Frame) => FoundImages | UnfinishedJob {
  let url: string | undefined
  let afterMs = FIRST_WAIT_MS / WAIT_FACTOR
  return frame => {
    const answer = parsed(frame)
    if (!isObject(answer)) throw errors.invalidAnswer('it is not a JSON object')
    const state = textIn(answer.status) ?? textIn(answer.state)
    if (url === undefined) url = pollingUrl(answer, target)
    else if (state === undefined) throw errorIn(answer, 'state', target)
    if (state === 'Ready') {
      const sample = isObject(answer.result) ? textIn(answer.result.sample) : undefined
      return { images: sample === undefined ? [] : [{ url: sample }] }
    }
    if (state?.endsWith('Moderated')) return { images: [], refused: `The provider left the image out: ${state}.` }
    if (state !== undefined && state !== 'Pending') throw errors.invalidAnswer(`its job ended: ${state.slice(0, 60)}`)
    afterMs = Math.min(afterMs * WAIT_FACTOR, MAX_WAIT_MS)
    return { url, afterMs }
  }
}

function pollingUrl(answer: Json, target: Target): string {
  const { id, polling_url } = answer
  const url = typeof polling_url === 'string' ? urlOf(polling_url) : undefined
  if (!url) throw errorIn(answer, 'polling_url', target)
  if (!url.searchParams.has('id')) url.searchParams.set('id', String(id))
  return url.href
}

const common = {
  lacks: new Set(['background']),
  fanOut: imageFanOut(() => 1),
  decoder: (_mode: unknown, target: Target) => new ImagesDecoder(1, reader(target)),
  error: plainError,
}

const images: Translator<'images'> = {
  op: 'images',
  wire: 'bfl.images',
  ...common,
  encode: (request, target) => ({
    path: `/${pathSegment(target.mapping.externalId)}`,
    body: fieldsOf(request, target),
  }),
}

const imageEdits: Translator<'image_edits'> = {
  op: 'image_edits',
  wire: 'bfl.image-edits',
  ...common,
  inlineMedia: true,
  maxInputs: MAX_IMAGES,
  encode: (request, target) => ({
    path: `/${pathSegment(target.mapping.externalId)}`,
    body: { ...fieldsOf(request, target), ...imagesOf(request, target.mapping.externalId) },
  }),
}

/** Black Forest Labs' FLUX API. */
export const plugin = { wires: [images, imageEdits] as const } satisfies Plugin
