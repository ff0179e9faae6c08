/** The canonical request of videos. */
import { type Infer, s } from '../../core/schema.ts'
import type { ImageInput } from '../images/request.ts'

const videoSizes = [
  '848x480',
  '854x480',
  '480x854',
  '1280x720',
  '720x1280',
  '1366x768',
  '768x1366',
  '1696x960',
  '1920x1080',
  '1080x1920',
  '1792x1024',
  '1024x1792',
  '3840x2160',
  '2160x3840',
] as const
type VideoSize = (typeof videoSizes)[number]

/** Characters of a prompt, and of what a film is not to show. */
const MAX_PROMPT_CHARACTERS = 32_000

const url = s.string({ minLength: 1 })
const image = s.either(url, s.open({ image_url: s.maybe(url) }))
const referred = <const K extends string>(key: K) =>
  s.array(s.either(url, s.open({ [key]: s.string({ minLength: 1 }) } as Record<K, ReturnType<typeof s.string>>)), {
    minItems: 1,
    maxItems: 3,
  })

/** A JSON body, or the fields of a form. */
export const videoBody = s.open({
  model: s.string({ minLength: 1, maxLength: 256 }),
  prompt: s.string({ minLength: 1, maxLength: MAX_PROMPT_CHARACTERS }),
  seconds: s.maybe(
    s.either(
      s.integer({ minimum: 1, maximum: 3600 }),
      s.string({ pattern: '^[1-9]\\d{0,3}$', description: 'a number of seconds' }),
    ),
  ),
  size: s.maybe(s.enum(...videoSizes)),
  audio: s.maybe(s.boolean()),
  image: s.maybe(image),
  last_frame: s.maybe(image),
  input_reference: s.maybe(s.either(url, s.open({}), s.array(image, { minItems: 1, maxItems: 9 }))),
  reference_images: s.maybe(s.array(image, { minItems: 1, maxItems: 9 })),
  reference_videos: s.maybe(referred('video_url')),
  reference_audios: s.maybe(referred('audio_url')),
  callback_url: s.maybe(s.string({ minLength: 1, maxLength: 2048 })),
  callback_secret: s.maybe(s.string({ minLength: 1, maxLength: 256 })),
  n: s.maybe(s.integer({ minimum: 1, maximum: 1 })),
  seed: s.maybe(s.integer()),
  negative_prompt: s.maybe(s.string({ maxLength: MAX_PROMPT_CHARACTERS })),
})
/** A valid body of `/v1/videos`. */
export type VideoBody = Infer<typeof videoBody>

/** The canonical request. */
export interface VideoRequest {
  readonly model: string
  readonly prompt: string
  /** Undefined for what is usual: see `secondsFor`. */
  readonly seconds: number | undefined
  readonly size: VideoSize
  /** Undefined for what the mapping has. */
  readonly audio: boolean | undefined
  /** The first frame, the last one, and images to go by. */
  readonly image: ImageInput | undefined
  readonly last_frame: ImageInput | undefined
  readonly reference_images: readonly ImageInput[]
  /** Addresses. */
  readonly reference_videos: readonly string[]
  readonly reference_audios: readonly string[]
  readonly callback: { readonly url: string; readonly secret: string } | undefined
  readonly seed?: number | undefined
  readonly negative_prompt?: string | undefined
}

/** Stored facts of a request: shown by its job, and used for its price. */
export interface VideoParams {
  readonly seconds: number
  readonly size: VideoSize
  readonly audio: boolean
  /** Input images. */
  readonly images: number
  /** Seconds of all reference videos together; absent when there are none. */
  readonly referenceSeconds?: number
}

const USUAL_SECONDS = 4

/** Returns the requested seconds, else the usual ones, else the shortest that the mapping makes. */
export const secondsFor = (
  { seconds }: Pick<VideoRequest, 'seconds'>,
  { videoSeconds }: { readonly videoSeconds?: readonly number[] | undefined },
): number =>
  seconds ?? (videoSeconds && !videoSeconds.includes(USUAL_SECONDS) ? Math.min(...videoSeconds) : USUAL_SECONDS)

/** Returns the class for prices and names of sizes, by the shorter side (docs/money.md#media-prices). */
export function videoClassOf(size: VideoSize): string {
  if (size === '1792x1024' || size === '1024x1792') return 'hd'
  const side = Math.min(...size.split('x').map(Number))
  return side === 2160 ? '4k' : `${side}p`
}

/** Width and height, reduced; sizes that are nearly 16:9 count as that. */
export function videoRatioOf(size: VideoSize): string {
  const [width = 0, height = 0] = size.split('x').map(Number)
  if (videoClassOf(size) === 'hd') return width > height ? '7:4' : '4:7'
  return width > height ? '16:9' : '9:16'
}

declare module '../../core/ops.ts' {
  interface Ops {
    videos: VideoRequest
  }
}
