/** ModelArk's video tasks, `bytedance.videos`. */
import {
  isObject,
  type Json,
  objectIn,
  type Plugin,
  pathSegment,
  secondsFor,
  type Target,
  type Translator,
  textIn,
  type VideoRequest,
  videoClassOf,
  videoRatioOf,
  type WireRequest,
} from '../src/plugin.ts'
import { plainError } from './shared/answer.ts'
import { urlOf } from './shared/images/inputs.ts'
import { jobDecoder, jobError, jobState, stateAnswer } from './shared/jobs.ts'

const LIFE_MS = 86_400_000
const TASKS = '/contents/generations/tasks'

function contentOf(request: Readonly<VideoRequest>): Json[] {
  const { prompt, image, last_frame: last, reference_images: images } = request
  const imagePart = (url: string, role?: string): Json => ({
    type: 'image_url',
    image_url: { url },
    ...(role && { role }),
  })
  return [
    { type: 'text', text: prompt },
    // One image alone has no role.
    ...(image ? [imagePart(urlOf(image), last ? 'first_frame' : undefined)] : []),
    ...(last ? [imagePart(urlOf(last), 'last_frame')] : []),
    ...images.map(one => imagePart(urlOf(one), 'reference_image')),
    ...request.reference_videos.map(url => ({ type: 'video_url', video_url: { url }, role: 'reference_video' })),
    ...request.reference_audios.map(url => ({ type: 'audio_url', audio_url: { url }, role: 'reference_audio' })),
  ]
}

function encode(request: Readonly<VideoRequest>, { mapping }: Target): WireRequest {
  const { size, seed, audio } = request
  const body: Json = {
    model: mapping.externalId,
    content: contentOf(request),
    ratio: videoRatioOf(size),
    duration: secondsFor(request, mapping),
    resolution: videoClassOf(size),
    watermark: false,
  }
  if (audio !== undefined) body.generate_audio = audio
  if (seed !== undefined) body.seed = seed
  return { path: TASKS, body }
}

const videos: Translator<'videos'> = {
  op: 'videos',
  wire: 'bytedance.videos',
  encode,
  decoder: (_mode, target) => jobDecoder('id', target),
  error: plainError,
  job: {
    lifeMs: LIFE_MS,
    poll: ({ upstreamId }) => ({ method: 'GET', path: `${TASKS}/${pathSegment(upstreamId)}`, body: {} }),
    read(body, target) {
      const answer = stateAnswer(body, target)
      const { content, usage, duration } = answer
      const url = isObject(content) ? textIn(content.video_url) : undefined
      const tokens = objectIn(usage).completion_tokens
      return {
        state: jobState(answer.status),
        error: jobError(answer.error),
        result: url === undefined ? undefined : { kind: 'url', url },
        usage: {
          ...(typeof tokens === 'number' && { completion: tokens }),
          ...(typeof duration === 'number' && { second: duration }),
        },
      }
    },
    cancel: ({ upstreamId }) => ({ method: 'DELETE', path: `${TASKS}/${pathSegment(upstreamId)}`, body: {} }),
  },
}

/** ModelArk's Video Generation API. */
export const plugin = { wires: [videos] as const } satisfies Plugin
