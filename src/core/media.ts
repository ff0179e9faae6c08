/** Media of a request: what they may come to, and images in tokens by the formulas that vendors publish. */
import type { Dimensions } from '../media/image.ts'
import type { Price } from './money.ts'

/** Estimates, except `images`. */
export interface Media {
  /** Size of each image, where known. */
  readonly images: readonly (Dimensions | undefined)[]
  readonly audioSeconds: number
  readonly fileTokens: number
  /** Pages among the files, of which models may also see images. */
  readonly pages?: number
  /** Additional tokens that files at addresses may have. The provider fetches these files. */
  readonly unmeasuredTokens?: number
  /** Seconds that audio at addresses may have: its tokens may have a rate of their own. */
  readonly unmeasuredAudio?: number
}

/** Output tokens of one image; equal to Gemini's smallest. */
export const IMAGE_TOKENS = 1290
/** Output tokens of the largest image, for models whose price ignores quality; equal to Gemini's 4K image. */
export const LARGE_IMAGE_TOKENS = 2000
/** Tokens of an image that has arrived but is not reported yet; 0 when images are not priced by tokens. */
export const tokensOfImage = (price: Price | undefined): number =>
  !price || price.perImage || price.rates.request !== undefined ? 0 : IMAGE_TOKENS
/** Pages that money is held for, for each tool of a provider that reads them. */
const MAX_PAGES = 10

/** Pages that a tool of a provider may read: the caller's limit up to a bound, or the bound where there is none. */
export const pagesOf = (limit?: unknown): number =>
  typeof limit === 'number' ? Math.max(1, Math.min(limit, MAX_PAGES)) : MAX_PAGES

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
