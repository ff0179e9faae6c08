/**
 * The images wires `bedrock.images` and `bedrock.image-edits`, for two model families (docs/contract.md#image-wires).
 */
import {
  aspectOf,
  errors,
  type FoundImage,
  type FoundImages,
  type Frame,
  type ImageEditRequest,
  type ImageRequest,
  ImagesDecoder,
  imageFanOut,
  imageSizeOf,
  isObject,
  type Json,
  listIn,
  pathSegment,
  type Target,
  type Translator,
  textIn,
} from '../../src/plugin.ts'
import { errorIn } from '../shared/answer.ts'
import { imageIn, parsedImages } from '../shared/images/base64.ts'
import { base64Of, pixelsFor, ratioFor } from '../shared/images/inputs.ts'
import { error } from './error.ts'

const STABILITY = /(?:^|\.)stability\./
const RATIOS = ['16:9', '1:1', '21:9', '2:3', '3:2', '4:5', '5:4', '9:16', '9:21']
const MAX_IMAGES = 5
/** For an image with only an aspect ratio. */
const DEFAULT_PIXELS = 1024 * 1024
const SIDE_STEP_PX = 16
/** How far an edit may deviate from its image; the wire has no default. */
const STRENGTH = 0.7

const mostOf = (id: string): number => (STABILITY.test(id) ? 1 : 5)

function nova(request: Readonly<ImageRequest>, task: Json): Json {
  const { n, quality } = request
  const aspect = aspectOf(request.aspect_ratio, undefined)
  const size = aspect === undefined ? imageSizeOf(request.size) : pixelsFor(aspect, DEFAULT_PIXELS, SIDE_STEP_PX)
  const isPremium = quality === 'hd' || quality === 'high' || quality === 'xhigh' || quality === 'max'
  return {
    ...task,
    imageGenerationConfig: {
      numberOfImages: n,
      ...size,
      ...(quality != null && quality !== 'auto' && { quality: isPremium ? 'premium' : 'standard' }),
    },
  }
}

function novaTask({ prompt: text, images, mask }: Readonly<ImageEditRequest>): Json {
  if (!mask) {
    return { taskType: 'IMAGE_VARIATION', imageVariationParams: { images: images.map(base64Of), text } }
  }
  const [image] = images
  return {
    taskType: 'INPAINTING',
    inPaintingParams: { image: base64Of(image!), text, maskImage: base64Of(mask) },
  }
}

function stability(request: Readonly<ImageRequest>, source: Json): Json {
  const { prompt, output_format } = request
  const aspect_ratio = source.image === undefined ? ratioFor(request, RATIOS) : undefined
  return {
    prompt,
    mode: source.image === undefined ? 'text-to-image' : 'image-to-image',
    ...(aspect_ratio !== undefined && { aspect_ratio }),
    ...(output_format !== undefined && { output_format }),
    ...source,
  }
}

function imageFor({ images, mask }: Readonly<ImageEditRequest>, id: string): Json {
  if (mask) throw errors.unsupported(`"${id}" takes no mask.`, 'mask')
  if (images.length > 1) throw errors.unsupported(`"${id}" takes one image.`, 'images')
  return { image: base64Of(images[0]!), strength: STRENGTH }
}

const invoke = ({ mapping: { externalId: id } }: Target, body: Json) => ({
  path: `/model/${pathSegment(id)}/invoke`,
  body,
})

function encode(request: Readonly<ImageRequest>, target: Target) {
  if (STABILITY.test(target.mapping.externalId)) return invoke(target, stability(request, {}))
  if (request.output_format !== undefined && request.output_format !== 'png') {
    throw errors.unsupported(`"${target.mapping.externalId}" makes only PNG files.`, 'output_format')
  }
  const task = { taskType: 'TEXT_IMAGE', textToImageParams: { text: request.prompt } }
  return invoke(target, nova(request, task))
}

function encodeEdit(request: Readonly<ImageEditRequest>, target: Target) {
  const { externalId: id } = target.mapping
  if (STABILITY.test(id)) return invoke(target, stability(request, imageFor(request, id)))
  return invoke(target, nova(request, novaTask(request)))
}

/** Stability reports a reason per omitted image, Nova one for all. */
function read(frame: Frame, target: Target): FoundImages {
  const answer = parsedImages(frame)
  if (!isObject(answer)) throw errors.invalidAnswer('it is not a JSON object')
  const { images, error, status, details, finish_reasons } = answer
  const reasons = listIn(finish_reasons).map(textIn)
  const reason = reasons.find(reason => reason !== undefined)
  const moderated = status === 'Request Moderated' ? (textIn(details) ?? status) : undefined
  const refused = textIn(error) ?? moderated ?? reason
  if (!Array.isArray(images) && refused === undefined) throw errorIn(answer, 'list of images', target)
  const found: FoundImage[] = []
  for (const [index, image] of listIn(images).entries())
    if (typeof image === 'string' && reasons[index] === undefined) found.push({ b64: imageIn(image) })
  return { images: found, refused }
}

const common = {
  lacks: new Set(['background', 'output_format:webp']),
  fanOut: imageFanOut(mostOf),
  decoder: (_mode: unknown, target: Target, input?: Readonly<ImageRequest>) =>
    new ImagesDecoder(input!.n, frame => read(frame, target)),
  error,
}

/** Makes images by the operation Invoke of the Runtime API. */
export const images: Translator<'images'> = { op: 'images', wire: 'bedrock.images', ...common, encode }

/** Edits images by the same operation. */
export const imageEdits: Translator<'image_edits'> = {
  op: 'image_edits',
  wire: 'bedrock.image-edits',
  ...common,
  inlineMedia: true,
  maxInputs: MAX_IMAGES,
  encode: encodeEdit,
}
