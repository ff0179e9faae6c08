/** Images: `POST /v1/images/generations`, and `/v1/images/edits` (docs/contract.md#images). */

import { IMAGE_PROMPT_TOKENS } from '../../core/media.ts'
import type { Price, Terms } from '../../core/money.ts'
import type { Operation } from '../../core/operation.ts'
import type { Model } from '../../core/translator.ts'
import { textSize } from '../../core/usage.ts'
import { imageClassOf } from '../../media/image.ts'
import { imagesOverChat } from './bridge.ts'
import { demo } from './demo.ts'
import { type ImageEditRequest, type ImageRequest, levelOf } from './request.ts'
import { imageEditRequirements, imageRequirements } from './requirements.ts'
import { imageUsage } from './tokens.ts'

const putsOut = ({ output }: Pick<Model, 'output'>) => output.includes('image')

/** Each image has a price, or its tokens and those of the prompt have. */
function isPriced({ perImage, rates: { prompt, completion, image_output, request } }: Price): boolean {
  if (perImage !== undefined) return true
  return prompt === undefined ? request !== undefined : (image_output ?? completion) !== undefined
}

/** Fields that the price of an image depends on. */
type PricedImage = Readonly<Pick<ImageRequest, 'quality' | 'size' | 'aspect_ratio' | 'service_tier'>>

/** The keys of prices by size, the narrowest first. Beside proportions only the class of a size is sent. */
export function imageTerms({ quality, size, aspect_ratio: ratio, service_tier: tier }: PricedImage): Terms {
  const class_ = imageClassOf(size)
  const exact = ratio === undefined ? size : undefined
  const qualities = [...new Set([quality, levelOf(quality)])].filter(name => name !== undefined)
  const both = qualities.flatMap(name => [`${name}/${exact}`, `${name}/${class_}`])
  const sizes = [...both, exact, class_, ...qualities].filter(name => name !== undefined)
  return { tier: tier === 'auto' ? undefined : tier, sizes }
}

const bridge = <O extends 'images' | 'image_edits'>(
  op: O,
  wires: Parameters<NonNullable<Operation['bridge']>>[0],
  model: Pick<Model, 'output' | 'operations'>,
) => (wires.has(op) || !putsOut(model) ? undefined : imagesOverChat(op, wires))

/** Fields that tune an answer, by the parameter that a mapping lists. */
const tuning = {
  quality: 'quality',
  moderation: 'moderation',
  service_tier: 'service_tier',
  output_compression: 'output_compression',
  partial_images: 'partial_images',
  user: 'user',
} as const

/** Only wires whose models may write text beside images have such a limit. */
const bounded = <R extends ImageRequest>(request: Readonly<R>, tokens: number): R => ({
  ...request,
  max_output: tokens,
})

const common = {
  isPriced,
  autoOption: 'auto_images',
  promptSize: ({ prompt }: ImageRequest) => textSize(prompt),
  unaffordable: { what: 'its images', instead: 'ask for fewer images' },
  // Ten large ones, as base64.
  answerBytes: 64 * 1024 * 1024,
  bounded,
  terms: imageTerms,
} as const

/** Priced by the image, or by tokens. */
export const images: Operation<'images'> = {
  ...common,
  name: 'images',
  impliedBy: putsOut,
  requirements: imageRequirements,
  extras: imageUsage,
  bridge: (wires, model) => bridge('images', wires, model),
  tuning: { ...tuning, style: 'style' },
  demo,
}

/** Priced as images, with the images of the request as input. */
export const imageEdits: Operation<'image_edits'> = {
  ...common,
  name: 'image_edits',
  impliedBy: model => putsOut(model) && (model.input.includes('image') || model.output.includes('text')),
  requirements: imageEditRequirements,
  media: request => ({ images: new Array(imagesIn(request)).fill(undefined), audioSeconds: 0, fileTokens: 0 }),
  extras: (request, mapping) => ({
    ...imageUsage(request, mapping),
    image_input: imagesIn(request) * IMAGE_PROMPT_TOKENS,
  }),
  bridge: (wires, model) => bridge('image_edits', wires, model),
  tuning: { ...tuning, input_fidelity: 'input_fidelity' },
}

const imagesIn = ({ images, mask }: Readonly<ImageEditRequest>): number => images.length + (mask ? 1 : 0)
