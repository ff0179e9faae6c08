/** What the decoders of pictures have in common: how many there are, and what is said when there are none. */
import {
  type Event,
  errors,
  type GatewayError,
  type GeneratedImage,
  type GeneratedImages,
  guessStatus,
  readFault,
  sniffPicture,
  type Target,
  type Usage,
  upstreamError,
} from '../../../src/plugin.ts'

/** What a wire finds in an answer. */
export interface Found extends Omit<GeneratedImages, 'images'> {
  readonly images: readonly GeneratedImage[]
  /** Why some are missing, where the provider left them out for what they show. */
  readonly refused?: string | undefined
  /** What was reported; the pictures themselves are counted here. */
  readonly usage?: Usage | undefined
}

/** More than `wanted` are cut. Throws 400 `content_filter` when all were left out, and 502 for none (media.md 3.3). */
export function imageEvents({ images, refused, usage, ...about }: Found, wanted: number): Event[] {
  if (images.length === 0) {
    throw refused === undefined ? errors.invalidAnswer('it holds no picture') : errors.contentFiltered(refused)
  }
  if (!images.every(isPicture)) throw errors.invalidAnswer('what it holds as a picture is none')
  const value: GeneratedImages = { ...about, images: images.slice(0, wanted) }
  return [
    { type: 'usage', usage: { ...usage, drawn: value.images.length } },
    { type: 'result', value },
  ]
}

/** By its first bytes: markup in the place of a picture is never passed on. */
const isPicture = ({ b64 }: GeneratedImage): boolean =>
  sniffPicture(typeof b64 === 'string' ? b64 : b64.text(HEAD_CHARACTERS)) !== undefined
const HEAD_CHARACTERS = 64

/** An error in place of pictures (E5). */
export function refusalIn(answer: unknown, target: Target): GatewayError | undefined {
  const fault = readFault(answer)
  return fault && upstreamError(guessStatus(fault), fault, target.credential?.secret)
}
