/** The Sora shape, `openai.videos`. */
import {
  errors,
  isObject,
  pathSegment,
  secondsFor,
  type Target,
  type Translator,
  type UpstreamJob,
  type VideoRequest,
  type WireRequest,
} from '../../src/plugin.ts'
import { plainError } from '../shared/answer.ts'
import { fileOf } from '../shared/images/inputs.ts'
import { jobDecoder, jobError, jobState, stateAnswer } from '../shared/jobs.ts'

function encode(request: Readonly<VideoRequest>, { mapping }: Target): WireRequest {
  const { prompt, size, image, last_frame: last, reference_images: references } = request
  if (last) throw errors.unsupported('This wire takes no last frame.', 'last_frame')
  if (request.reference_videos.length > 0 || request.reference_audios.length > 0) {
    throw errors.unsupported('This wire takes images as references only.', 'reference_videos')
  }
  const images = image ? [image] : references
  const seconds = String(secondsFor(request, mapping))
  const files = images.map((input, at) => fileOf(input, 'input_reference', `image-${at}`))
  return { path: '/videos', body: { model: mapping.externalId, prompt, seconds, size }, files }
}

const at = ({ upstreamId }: UpstreamJob): string => `/videos/${pathSegment(upstreamId)}`

/** OpenAI's Videos API, `POST /videos`. */
export const videos: Translator<'videos'> = {
  op: 'videos',
  wire: 'openai.videos',
  inlineMedia: true,
  encode,
  decoder: (_mode, target) => jobDecoder('id', target),
  error: plainError,
  job: {
    poll: job => ({ method: 'GET', path: at(job), body: {} }),
    read(body, target) {
      const answer = stateAnswer(body, target)
      const { progress, seconds, expires_at: expires } = answer
      const length = Number(seconds)
      return {
        state: jobState(answer.status),
        progress: typeof progress === 'number' ? progress : undefined,
        error: isObject(answer.error) ? jobError(answer.error) : undefined,
        result: { kind: 'own' },
        usage: length > 0 ? { second: length } : undefined,
        expiresAt: typeof expires === 'number' ? expires * 1000 : undefined,
      }
    },
    result: job => ({ method: 'GET', path: `${at(job)}/content`, body: {} }),
    cancel: job => ({ method: 'DELETE', path: at(job), body: {} }),
  },
}
