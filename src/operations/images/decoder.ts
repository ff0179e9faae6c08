/** Reads images: of an answer, of a job that has ended, and from addresses (docs/contract.md#polled-answers). */

import type { Event } from '../../core/event.ts'
import { IMAGE_TOKENS } from '../../core/media.ts'
import type { Target } from '../../core/translator.ts'
import { estimateTokens, type Usage } from '../../core/usage.ts'
import type { Decoder, Frame } from '../../core/wire.ts'
import { billed } from '../../json/answer-bounds.ts'
import { errors, GatewayError } from '../../lib/error.ts'
import { sniffImage } from '../../wire/wire.ts'
import { Base64Slice, type GeneratedImage, type GeneratedImages, type ImageRequest } from './request.ts'

/** An image that is here, or where it stands: an address of the provider's, which no client gets to see. */
export type FoundImage = GeneratedImage | { readonly url: string; readonly revised_prompt?: string | undefined }

/** Content of a wire's answer. */
export interface FoundImages extends Omit<GeneratedImages, 'images'> {
  readonly images: readonly FoundImage[]
  /** Why some are missing, where the provider left them out for what they show. */
  readonly refused?: string | undefined
  /** Reported usage; the images themselves are counted here. */
  readonly usage?: Usage | undefined
  /** The service tier that was served, in the API's terms. */
  readonly tier?: string | undefined
  /** Bytes of text and thoughts that came; they are counted where no tokens were reported. */
  readonly written?: number | undefined
}

/** Reported or estimated usage of an answer. */
interface Report {
  readonly usage?: Usage | undefined
  readonly estimated?: true
}

/** Where the state of a job is read next, and when. */
export interface UnfinishedJob {
  readonly url: string
  readonly afterMs: number
}

type ReadImages = (frame: Frame) => FoundImages | UnfinishedJob

/** Reads whole bodies with `read`; a GatewayError that it throws is the answer's error. */
export class ImagesDecoder implements Decoder {
  readonly #read: ReadImages
  readonly #wanted: number
  #found: (Omit<GeneratedImages, 'images'> & Report) | undefined
  #tier: string | undefined
  /** Loaded images; they stand before those that are still fetched. */
  #images: FoundImage[] = []
  #waits = false
  #done = false

  /** More images than `wanted` are cut. */
  constructor(wanted: number, read: ReadImages) {
    this.#wanted = wanted
    this.#read = read
  }

  get done(): boolean {
    return this.#done
  }

  frame(frame: Frame): Event[] {
    try {
      if (this.#found) return this.#fetched(frame)
      const read = this.#read(frame)
      if ('images' in read) return this.found(read)
      this.#waits = true
      return [{ type: 'wait', url: read.url, afterMs: read.afterMs }]
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      this.#done = true
      return [{ type: 'error', error: thrown }]
    }
  }

  end(): Event[] {
    const isRead = this.#done || this.#waits || this.#found !== undefined
    return isRead ? [] : [{ type: 'error', error: errors.invalidAnswer('it is empty') }]
  }

  /**
   * Ends with 400 `content_filter` when all images were left out, and with 502 for none (docs/contract.md#images): charged
   * where the model has written anything in their place, since the caller may have had it do so.
   */
  found({ images, refused, usage: reported, tier, written = 0, ...about }: FoundImages): Event[] {
    const report = reportOf(reported, written, images.length)
    this.#tier = tier
    if (images.length === 0) {
      this.#done = true
      const error = refused === undefined ? errors.invalidAnswer(lackOf(written)) : errors.contentFiltered(refused)
      if (!report.usage?.completion) return [{ type: 'error', error }]
      return [...tierEvents(tier), usageEvent(report), { type: 'error', error: billed(error) }]
    }
    this.#found = { ...about, ...report }
    this.#images = images.slice(0, this.#wanted)
    return this.#next()
  }

  #fetched({ bytes }: Frame): Event[] {
    const at = this.#images.findIndex(isElsewhere)
    const { revised_prompt } = this.#images[at]!
    this.#images[at] = { b64: base64Of(bytes!), revised_prompt }
    return this.#next()
  }

  #next(): Event[] {
    const next = this.#images.find(isElsewhere)
    if (next) return [{ type: 'fetch', url: next.url }]
    this.#done = true
    return [...tierEvents(this.#tier), ...imageEvents({ ...this.#found!, images: this.#images as GeneratedImage[] })]
  }
}

const tierEvents = (tier: string | undefined): Event[] => (tier === undefined ? [] : [{ type: 'tier', tier }])

/** The tier that all of several answers were served at, which is then that of their sum; nothing where they differ. */
export function commonTier(answers: readonly (readonly Event[])[]): Event[] {
  const tiers = answers.map(events => events.findLast(event => event.type === 'tier')?.tier)
  return tiers.every(tier => tier === tiers[0]) ? tierEvents(tiers[0]) : []
}

const lackOf = (written: number): string =>
  written > 0 ? 'it holds text in the place of an image' : 'it holds no image'

function reportOf(usage: Usage | undefined, written: number, images: number): Report {
  if (usage?.completion !== undefined || written === 0) return { usage }
  const image_output = images * IMAGE_TOKENS
  return { usage: { ...usage, completion: estimateTokens(written) + image_output, image_output }, estimated: true }
}

const usageEvent = ({ usage = {}, estimated }: Report): Event =>
  estimated ? { type: 'usage', usage, estimated } : { type: 'usage', usage }

/** The end of an answer whose images are all here. Throws 502 for what is none. */
export function imageEvents({ usage, estimated, ...value }: GeneratedImages & Report): Event[] {
  const { images } = value
  if (!images.every(isImage)) throw errors.invalidAnswer('an image in it has no known format')
  return [
    usageEvent({ usage: { ...usage, output_images: images.length }, ...(estimated && { estimated }) }),
    { type: 'result', value },
  ]
}

const base64Of = (bytes: Buffer): Base64Slice => new Base64Slice(Buffer.from(bytes.toString('base64'), 'latin1'))

const isElsewhere = (image: FoundImage): image is Extract<FoundImage, { url: string }> => 'url' in image

/** Checks the first bytes: markup in place of an image is never passed on. */
const isImage = ({ b64 }: GeneratedImage): boolean =>
  sniffImage(typeof b64 === 'string' ? b64 : b64.text(HEAD_CHARACTERS)) !== undefined
const HEAD_CHARACTERS = 64

/** Images of one request. */
function eachOf(mostOf: (externalId: string) => number, { mapping }: Target): number {
  const most = mostOf(mapping.externalId)
  return Math.min(most, mapping.maxImageN ?? most)
}

/** For wires that make so many images of a model at once, or as many as its mapping says, if that is less. */
export const imageFanOut = (mostOf: (externalId: string) => number) => ({
  repeats: true as const,
  count: (input: Readonly<ImageRequest>, target: Target): number => Math.ceil(input.n / eachOf(mostOf, target)),
  split<R extends ImageRequest>(input: Readonly<R>, target: Target): readonly R[] {
    const each = eachOf(mostOf, target)
    const parts: R[] = []
    for (let left = input.n; left > 0; left -= each) parts.push({ ...input, n: Math.min(left, each) })
    return parts
  },
  /** Joins the answers. The first one's description of its images holds for all. */
  join(answers: readonly (readonly Event[])[]): Event[] {
    const values = answers.flatMap(events =>
      events.flatMap(event => (event.type === 'result' ? [event.value as GeneratedImages] : [])),
    )
    return [
      ...commonTier(answers),
      { type: 'result', value: { ...values[0]!, images: values.flatMap(({ images }) => images) } },
    ]
  },
})
