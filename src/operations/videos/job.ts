/** Videos as jobs: what is kept of a request, what the end costs, and the job as clients get it. */

import { costOf } from '../../core/cost.ts'
import type { JobOperation } from '../../core/job.ts'
import { readPrice, type Terms, toNumber } from '../../core/money.ts'
import type { Job, JobState } from '../../core/ports.ts'
import type { Usage } from '../../core/usage.ts'

import { secondsFor, type VideoParams, type VideoRequest, videoClassOf } from './request.ts'

/** ISO base media (ISO 14496-12 section 4.3), and EBML, which WebM is. */
const FTYP = 'ftyp'
const EBML = 0x1a45dfa3

/** The number of input images. */
const imagesIn = ({ image, last_frame, reference_images }: Readonly<VideoRequest>): number =>
  Number(image !== undefined) + Number(last_frame !== undefined) + (reference_images?.length ?? 0)

/** The keys of prices by size, the narrowest first. */
export function videoTerms({ size = '1280x720', audio }: Pick<VideoParams, 'size' | 'audio'>): Terms {
  const class_ = videoClassOf(size)
  return { sizes: [...(audio ? [] : [`${size}/silent`, `${class_}/silent`]), size, class_] }
}

/** Tokens per second of video, where tokens are priced (docs/money.md#media-prices). */
const TOKENS_PER_SECOND = 25_000

/** Assumed seconds of a reference video. It stands at an address and is not read. */
const REFERENCE_SECONDS = 15

/** Returns the seconds of all reference videos of a request. */
const referenceSeconds = ({ reference_videos }: Readonly<VideoRequest>): number =>
  (reference_videos?.length ?? 0) * REFERENCE_SECONDS

/** Tokens that a video may come to: those of its reference videos count as its own. */
const tokensOf = ({ seconds, referenceSeconds: more = 0 }: VideoParams): number => (seconds + more) * TOKENS_PER_SECOND

/** Without a report of tokens none are counted. What a provider reports counts where it is at most twice what was expected. */
const videoUsage = (params: VideoParams, { second, completion }: Usage = {}): Usage => {
  const { seconds, images } = params
  const isLikely = second !== undefined && second >= 1 && second <= 2 * seconds
  const usage: Usage = { second: isLikely ? second : seconds }
  if (images > 0) usage.image = images
  const tokens = tokensOf(params)
  if (completion !== undefined) usage.completion = completion <= 2 * tokens ? completion : tokens
  return usage
}

/** Estimates the usage of a video of this length. */
export function expectedUsage(request: Readonly<VideoRequest>, seconds: number): Usage {
  const { size, audio } = request
  const params = {
    seconds,
    size,
    audio: audio !== false,
    images: imagesIn(request),
    referenceSeconds: referenceSeconds(request),
  }
  return videoUsage(params, { completion: tokensOf(params) })
}

/** Describes videos to the job engine; `params` are `VideoParams`. */
export const videoJob: JobOperation<VideoRequest> = {
  kind: 'video',
  prefix: 'video_',
  params: (request, { mapping }) =>
    ({
      seconds: secondsFor(request, mapping),
      size: request.size,
      audio: request.audio ?? !(mapping.supports.has('video_without_audio') && !mapping.supports.has('video_audio')),
      images: imagesIn(request),
      ...(referenceSeconds(request) > 0 && { referenceSeconds: referenceSeconds(request) }),
    }) satisfies VideoParams,
  callback: ({ callback }) => callback ?? null,
  terms: params => videoTerms(params as VideoParams),
  usage: (params, reported) => videoUsage(params as VideoParams, reported),
  resultType(head) {
    if (head.length >= 12 && head.toString('latin1', 4, 8) === FTYP) return 'video/mp4'
    return head.length >= 4 && head.readUInt32BE(0) === EBML ? 'video/webm' : undefined
  },
  event: (state: JobState) => (state === 'completed' ? 'video.completed' : 'video.failed'),
  show: videoObject,
}

const seconds = (ms: number | null): number | null => (ms === null ? null : Math.floor(ms / 1000))

function videoObject(job: Job, address: string | undefined): object {
  const params = JSON.parse(job.params) as VideoParams
  const isEnded = job.completedAt !== null
  const type = job.result?.kind === 'blob' ? job.result.type : 'video/mp4'
  return {
    id: job.id,
    object: 'video',
    model: job.model,
    status: job.state,
    progress: isEnded ? 100 : (job.progress ?? (job.state === 'in_progress' ? 50 : null)),
    created_at: seconds(job.createdAt),
    completed_at: seconds(job.completedAt),
    expires_at: seconds(job.expiresAt),
    seconds: String(params.seconds),
    size: params.size,
    prompt: null,
    remixed_from_video_id: null,
    error: job.error,
    ...(address !== undefined && { content: [{ type: 'video', url: address, mime_type: type }] }),
    ...(isEnded && { usage: usageOf(job, params) }),
  }
}

/** The share of the images by the price; what was charged in all is what counts. */
function usageOf({ cost, price, state }: Job, params: VideoParams): object {
  const total = toNumber(cost ?? 0n)
  const images = state === 'completed' ? costOf(videoUsage(params), readPrice(price), videoTerms(params)) : null
  const input = images ? Math.min(total, toNumber(images.imageInput)) : 0
  const output = Number((total - input).toFixed(9))
  return {
    cost: total,
    cost_details: { video_output_cost: output, image_input_cost: input, total_cost: total },
  }
}
