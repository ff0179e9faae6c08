/** Estimates the media of a request before the files are read. */
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
