/** Images over generateContent: `gemini.images`, `gemini.image-edits`, and on Vertex AI (docs/contract.md#image-wires). */
import {
  countIn,
  errors,
  type FoundImage,
  type FoundImages,
  type Frame,
  type ImageEditRequest,
  type ImageRequest,
  ImagesDecoder,
  imageClassOf,
  imageFanOut,
  imageOutput,
  isObject,
  type Json,
  listIn,
  objectIn,
  pathSegment,
  type Target,
  type Translator,
  textIn,
  textSize,
  type Usage,
  type WireRequest,
} from '../../src/plugin.ts'
import { imageAnswer, imageIn } from '../shared/images/base64.ts'
import { base64Of, ratioFor, typeOf } from '../shared/images/inputs.ts'
import { blockedBy, error, errorOf, filteredBy } from './error.ts'
import { type Surface, vertex } from './surface.ts'
import { ofModality, tierOf, UsageMeter } from './usage.ts'

const RATIOS = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9']
/** Older models have one size alone. */
const HAS_SIZES = /^gemini-3/
function encode(
  request: Readonly<ImageRequest>,
  images: readonly Json[],
  { mapping }: Target,
  surface: Surface,
): WireRequest {
  const { externalId: id } = mapping
  const { size, output_format: format, output_compression: compression } = request
  const aspectRatio = ratioFor(request, RATIOS)
  const imageConfig: Json = {
    ...(aspectRatio !== undefined && { aspectRatio }),
    ...(size !== undefined && HAS_SIZES.test(id) && { imageSize: imageClassOf(size).toUpperCase() }),
    ...(surface === vertex &&
      format !== undefined && {
        imageOutputOptions: {
          mimeType: `image/${format}`,
          ...(compression !== undefined && { compressionQuality: compression }),
        },
      }),
  }
  const output = imageOutput(request, mapping)
  const { body, headers } = surface.extras(request)
  return {
    path: `${surface.models}/${pathSegment(id)}:generateContent`,
    body: {
      contents: [{ role: 'user', parts: [...images, { text: request.prompt }] }],
      generationConfig: {
        responseModalities: ['IMAGE'],
        maxOutputTokens: output.limit,
        ...(Object.keys(imageConfig).length > 0 && { imageConfig }),
      },
      ...body,
    },
    output,
    ...(headers && { headers }),
  }
}

const partsOf = ({ images }: Readonly<ImageEditRequest>): Json[] =>
  images.map(image => ({ inlineData: { mimeType: typeOf(image), data: base64Of(image) } }))

function read(frame: Frame, target: Target): FoundImages {
  const { answer, slices } = imageAnswer(frame, 'data')
  const reported = errorOf(answer, target)
  if (reported) throw reported
  if (!isObject(answer)) throw errors.invalidAnswer('it is not a JSON object')
  const images: FoundImage[] = []
  let written = 0
  let refused = blockedBy(answer.promptFeedback)
  for (const candidate of listIn(answer.candidates).filter(isObject)) {
    refused ??= filteredBy(candidate)
    const content = objectIn(candidate.content)
    for (const part of listIn(content.parts).filter(isObject)) {
      written += textSize(textIn(part.text) ?? '')
      const { mimeType, data } = objectIn(part.inlineData)
      if (part.thought === true || typeof data !== 'string' || !textIn(mimeType)?.startsWith('image/')) continue
      images.push({ b64: imageIn(data, slices) })
    }
  }
  const report = answer.usageMetadata
  return { images, refused, usage: usageOf(report, images.length > 0), tier: tierOf(report), written }
}

/** Without details, all that was answered is images where there are any. */
function usageOf(report: unknown, hasImages: boolean): Usage | undefined {
  const meter = new UsageMeter()
  meter.add(report)
  const { total } = meter
  if (!total || !isObject(report)) return undefined
  return {
    ...total,
    image_input: ofModality(report.promptTokensDetails, 'IMAGE') ?? 0,
    image_output: total.image_output ?? (hasImages ? countIn(report.candidatesTokenCount) : undefined) ?? 0,
  }
}

const STUDIO_LACKS: ReadonlySet<string> = new Set(['mask', 'background', 'output_format'])
const VERTEX_LACKS: ReadonlySet<string> = new Set(['mask', 'background', 'output_format:webp'])

/** Both wires of a surface. */
export function imagesOf(prefix: string, surface: Surface) {
  const common = {
    lacks: surface === vertex ? VERTEX_LACKS : STUDIO_LACKS,
    fanOut: imageFanOut(() => 1),
    decoder: (_mode: unknown, target: Target, input?: Readonly<ImageRequest>) =>
      new ImagesDecoder(input!.n, frame => read(frame, target)),
    error,
  }
  const images: Translator<'images'> = {
    op: 'images',
    wire: `gemini.${prefix}images`,
    ...common,
    encode: (request, target) => encode(request, [], target, surface),
  }
  const edits: Translator<'image_edits'> = {
    op: 'image_edits',
    wire: `gemini.${prefix}image-edits`,
    ...common,
    inlineMedia: true,
    encode: (request, target) => encode(request, partsOf(request), target, surface),
  }
  return [images, edits] as const
}
