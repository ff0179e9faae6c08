/** What an image comes to in tokens of a prompt, by the formula that the vendor of a model publishes. */
import type { Dimensions } from '../media/image.ts'

/** `image_tokens` of `config/models.d`: patches that cover the image, each of so many tokens, up to a maximum. */
export interface ImageTokens {
  /** Width and height of a patch, in pixels. */
  readonly patchSize: number
  /** Tokens of a patch; may be a fraction. */
  readonly perPatch: number
  /** Tokens of every image besides its patches. */
  readonly base: number
  /** Tokens of the largest image: vendors scale down what would have more. */
  readonly max: number
}

/** Of an image, for models without a formula. */
export const IMAGE_PROMPT_TOKENS = 1600

/** Of one image; `max` where its size is not known. */
function tokensOf({ patchSize, perPatch, base, max }: ImageTokens, image: Dimensions | undefined): number {
  if (!image) return max
  const patches = Math.ceil(image.width / patchSize) * Math.ceil(image.height / patchSize)
  return Math.min(max, Math.ceil(base + perPatch * patches))
}

/** A page of a document as vendors show it to a model: A4 at 150 dots an inch. */
const PAGE: Dimensions = { width: 1240, height: 1754 }

/** What the images of so many pages have beyond what `PAGE_TOKENS` holds for them. */
export const morePageTokens = (pages: number, formula: ImageTokens | undefined): number =>
  formula && pages > 0 ? pages * Math.max(0, tokensOf(formula, PAGE) - IMAGE_PROMPT_TOKENS) : 0

/** Of all images of a request. At least what is billed: scaling, which makes fewer patches, is not computed. */
export function imageTokensOf(images: readonly (Dimensions | undefined)[], formula: ImageTokens | undefined): number {
  if (!formula) return images.length * IMAGE_PROMPT_TOKENS
  let sum = 0
  for (const image of images) sum += tokensOf(formula, image)
  return sum
}
