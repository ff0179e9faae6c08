/** Tokens that images may have, and all of an answer with them (docs/money.md#media-prices). */

import { LARGE_IMAGE_TOKENS } from '../../core/media.ts'
import { takes } from '../../core/operation.ts'
import type { Mapping } from '../../core/translator.ts'
import type { Usage } from '../../core/usage.ts'
import type { SentOutput } from '../../core/wire.ts'
import type { ImageRequest } from './request.ts'

/** Tokens that an image may have, by its quality. */
const QUALITY_TOKENS: Readonly<Record<string, number>> = {
  low: 400,
  medium: 1_600,
  standard: 1_600,
  xhigh: 12_600,
  max: 25_000,
}
/** Tokens of an image of quality `high` or `hd`, or when the provider chooses. */
const USUAL_TOKENS = 6_300
/** Tokens of text and thoughts beside the images; several times those of an honest answer. */
const TEXT_TOKENS = 8_192

type Wanted = Readonly<Pick<ImageRequest, 'n' | 'quality'>>

/** Images, and the tokens that they may have. */
export function imageUsage({ n, quality }: Wanted, mapping: Mapping): Usage {
  const tokens = n * tokensOf(quality, mapping)
  return { output_images: n, completion: tokens, image_output: tokens }
}

/**
 * A quality that the mapping does not take saves none where the provider chooses one. Models that may write text beside
 * their images make no difference by quality where their mapping says that they take none.
 */
function tokensOf(quality: ImageRequest['quality'], mapping: Mapping): number {
  if (takes(mapping, 'quality')) return QUALITY_TOKENS[quality ?? ''] ?? USUAL_TOKENS
  return mapping.model.output.includes('text') ? LARGE_IMAGE_TOKENS : USUAL_TOKENS
}

/**
 * The output limit of one request to a model that may write text and thoughts beside its images, which count in it. One
 * below `least`, which would cut the images, is never sent.
 */
export function imageOutput(
  { n, quality, max_output: given }: Wanted & Pick<ImageRequest, 'max_output'>,
  mapping: Mapping,
): SentOutput & { readonly limit: number } {
  const images = n * Math.max(LARGE_IMAGE_TOKENS, tokensOf(quality, mapping))
  const most = Math.min(images + TEXT_TOKENS, mapping.maxOutput ?? Number.POSITIVE_INFINITY)
  const least = Math.min(images, most)
  return { limit: Math.min(Math.max(given ?? most, least), most), least, whole: true }
}
