/** Imagen's predictions on Vertex AI, `vertex.imagen` (docs/contract.md#image-wires). */
import {
  type FoundImage,
  type FoundImages,
  type Frame,
  type ImageRequest,
  ImagesDecoder,
  imageClassOf,
  imageFanOut,
  isObject,
  listIn,
  objectIn,
  pathSegment,
  type Target,
  type Translator,
  textIn,
  type WireRequest,
} from '../../src/plugin.ts'
import { imageAnswer, imageIn } from '../shared/images/base64.ts'
import { ratioFor } from '../shared/images/inputs.ts'
import { error, errorOf } from './error.ts'
import { vertex } from './surface.ts'

const RATIOS = ['1:1', '3:4', '4:3', '9:16', '16:9']
const MAX_IMAGES = 4

function encode(request: Readonly<ImageRequest>, { mapping }: Target): WireRequest {
  const { prompt, n, size, output_format: format, output_compression: compressionQuality } = request
  const aspectRatio = ratioFor(request, RATIOS)
  const outputOptions = {
    ...(format !== undefined && { mimeType: `image/${format}` }),
    ...(compressionQuality !== undefined && { compressionQuality }),
  }
  return {
    path: `${vertex.models}/${pathSegment(mapping.externalId)}:predict`,
    body: {
      instances: [{ prompt }],
      parameters: {
        sampleCount: n,
        ...(aspectRatio !== undefined && { aspectRatio }),
        ...(size !== undefined && { sampleImageSize: imageClassOf(size) === '1k' ? '1K' : '2K' }),
        ...(Object.keys(outputOptions).length > 0 && { outputOptions }),
      },
    },
  }
}

/** A prediction that was left out has a reason in the place of its image. */
function read(frame: Frame, target: Target): FoundImages {
  const { answer, slices } = imageAnswer(frame, 'bytesBase64Encoded')
  const reported = errorOf(answer, target)
  if (reported) throw reported
  const images: FoundImage[] = []
  let refused: string | undefined
  for (const one of listIn(objectIn(answer).predictions).filter(isObject)) {
    const b64 = textIn(one.bytesBase64Encoded)
    if (b64 !== undefined) images.push({ b64: imageIn(b64, slices), revised_prompt: textIn(one.prompt) })
    else refused ??= textIn(one.raiFilteredReason)
  }
  return { images, refused }
}

/** Vertex AI's Imagen API, `:predict`. */
export const imagen: Translator<'images'> = {
  op: 'images',
  wire: 'vertex.imagen',
  lacks: new Set(['background', 'output_format:webp']),
  fanOut: imageFanOut(() => MAX_IMAGES),
  encode,
  decoder: (_mode, target, input) => new ImagesDecoder(input!.n, frame => read(frame, target)),
  error,
}
