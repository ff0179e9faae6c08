/** Counts the prompt tokens of an image by the formula that the model's vendor publishes. */
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

/** Tokens of an image, for models without a formula. */
export const IMAGE_PROMPT_TOKENS = 1600

/** Tokens of one image; `max` when its size is unknown. */
function tokensOf({ patchSize, perPatch, base, max }: ImageTokens, image: Dimensions | undefined): number {
  if (!image) return max
  const patches = Math.ceil(image.width / patchSize) * Math.ceil(image.height / patchSize)
  return Math.min(max, Math.ceil(base + perPatch * patches))
}

/** A page of a document as vendors show it to a model: A4 at 150 dots an inch. */
const PAGE: Dimensions = { width: 1240, height: 1754 }

/** Image tokens of `pages` pages beyond those that `PAGE_TOKENS` includes. */
export const morePageTokens = (pages: number, formula: ImageTokens | undefined): number =>
  formula && pages > 0 ? pages * Math.max(0, tokensOf(formula, PAGE) - IMAGE_PROMPT_TOKENS) : 0

/**
 * Tokens of all images of a request. The result is never below the bill: scaling, which reduces patches, is ignored.
 */
export function imageTokensOf(images: readonly (Dimensions | undefined)[], formula: ImageTokens | undefined): number {
  if (!formula) return images.length * IMAGE_PROMPT_TOKENS
  let sum = 0
  for (const image of images) sum += tokensOf(formula, image)
  return sum
}
