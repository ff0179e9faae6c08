/** xAI's images wires, `xai.images` and `xai.image-edits` (docs/contributing/wire-sources.md#xai); both are JSON. */
import {
  type ImageRequest,
  imageClassOf,
  imageFanOut,
  type Json,
  levelOf,
  type Plugin,
  type Target,
  type Translator,
} from '../src/plugin.ts'
import { plainError } from './shared/answer.ts'
import { ratioFor, urlOf } from './shared/images/inputs.ts'
import { openAiImages } from './shared/images/openai-form.ts'

const RATIOS = ['1:1', '3:4', '4:3', '9:16', '16:9', '2:3', '3:2', '1:2', '2:1', '9:20', '20:9']
const MAX_IMAGES = 10
/** It refuses other words, such as `standard` and `auto`. */
const QUALITIES: readonly unknown[] = ['low', 'medium', 'high']

function fieldsOf(request: Readonly<ImageRequest>, { mapping }: Target): Json {
  const { prompt, n, size, output_format } = request
  const aspect_ratio = ratioFor(request, RATIOS)
  const quality = levelOf(request.quality)
  return {
    model: mapping.externalId,
    prompt,
    n,
    response_format: 'b64_json',
    ...(aspect_ratio !== undefined && { aspect_ratio }),
    ...(size !== undefined && { resolution: imageClassOf(size) === '1k' ? '1k' : '2k' }),
    ...(QUALITIES.includes(quality) && { quality }),
    ...(output_format !== undefined && { output_format }),
  }
}

const common = {
  lacks: new Set(['mask', 'background']),
  fanOut: imageFanOut(() => MAX_IMAGES),
  decoder: openAiImages,
  error: plainError,
}

const images: Translator<'images'> = {
  op: 'images',
  wire: 'xai.images',
  ...common,
  encode: (request, target) => ({ path: '/images/generations', body: fieldsOf(request, target) }),
}

const imageEdits: Translator<'image_edits'> = {
  op: 'image_edits',
  wire: 'xai.image-edits',
  ...common,
  encode(request, target) {
    const images = request.images.map(image => ({ url: urlOf(image), type: 'image_url' }))
    const [first, ...more] = images
    const body = fieldsOf(request, target)
    return { path: '/images/edits', body: { ...body, ...(more.length > 0 ? { images } : { image: first }) } }
  },
}

/** xAI's Image Generation and Image Edits APIs. */
export const plugin = { wires: [images, imageEdits] as const } satisfies Plugin
