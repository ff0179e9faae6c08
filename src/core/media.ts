/** What the media of a request may come to, estimated before they are read. */
import type { Dimensions } from '../media/image.ts'
import type { Price } from './money.ts'

/** Estimates, except `images`. */
export interface Media {
  /** Of each image: its size where that is known. */
  readonly images: readonly (Dimensions | undefined)[]
  readonly audioSeconds: number
  readonly fileTokens: number
  /** Pages among the files, of which models may also see images. */
  readonly pages?: number
  /** What more the files may have that its provider fetches: those at addresses. */
  readonly unmeasuredTokens?: number
  /** Seconds that audio at addresses may have: its tokens may have a rate of their own. */
  readonly unmeasuredAudio?: number
}

/** Of an image in an answer; Gemini's smallest has so many. */
export const IMAGE_TOKENS = 1290
/** Of the largest image of models that make no difference by quality; Gemini's of 4K has so many. */
export const LARGE_IMAGE_TOKENS = 2000
/** The same of one that has come and is not reported yet: 0 where images are not paid by tokens. */
export const tokensOfImage = (price: Price | undefined): number =>
  !price || price.perImage || price.rates.request !== undefined ? 0 : IMAGE_TOKENS
/** Pages that money is held for, for each tool of a provider that reads them. */
const MAX_PAGES = 10

/** Pages that a tool of a provider may read: the caller's limit up to a bound, or the bound where there is none. */
export const pagesOf = (limit?: unknown): number =>
  typeof limit === 'number' ? Math.max(1, Math.min(limit, MAX_PAGES)) : MAX_PAGES
