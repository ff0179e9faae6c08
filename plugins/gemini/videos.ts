/** Google's videos, `gemini.videos` and `gemini.vertex-videos`. */
import {
  errors,
  type ImageInput,
  isObject,
  type JobForm,
  type JobReport,
  type Json,
  listIn,
  objectIn,
  pathSegment,
  secondsFor,
  type Target,
  type Translator,
  textIn,
  type VideoRequest,
  videoClassOf,
  videoRatioOf,
  type WireRequest,
} from '../../src/plugin.ts'
import { base64Of, typeOf } from '../shared/images/inputs.ts'
import { jobDecoder, jobError, stateAnswer } from '../shared/jobs.ts'
import { error } from './error.ts'
import { type Surface, studio } from './surface.ts'

/** Files of the Gemini API. */
const LIFE_MS = 2 * 86_400_000

const pictureOf = (input: ImageInput): Json => ({ bytesBase64Encoded: base64Of(input), mimeType: typeOf(input) })

function encode(request: Readonly<VideoRequest>, { mapping }: Target, surface: Surface): WireRequest {
  const { prompt, image, last_frame: last, reference_images: references, size, seed, negative_prompt } = request
  if (request.reference_videos.length > 0 || request.reference_audios.length > 0) {
    throw errors.unsupported('This wire takes images as references only.', 'reference_videos')
  }
  const instance: Json = { prompt }
  if (image) instance.image = pictureOf(image)
  if (last) instance.lastFrame = pictureOf(last)
  if (references.length > 0) {
    instance.referenceImages = references.map(one => ({ image: pictureOf(one), referenceType: 'asset' }))
  }
  const parameters: Json = {
    aspectRatio: videoRatioOf(size),
    resolution: videoClassOf(size),
    durationSeconds: secondsFor(request, mapping),
    sampleCount: 1,
  }
  if (negative_prompt !== undefined) parameters.negativePrompt = negative_prompt
  if (seed !== undefined) parameters.seed = seed
  if (surface !== studio && request.audio !== undefined) parameters.generateAudio = request.audio
  const path = `${surface.models}/${pathSegment(mapping.externalId)}:predictLongRunning`
  return { path, body: { instances: [instance], parameters } }
}

/** The state of a job without a result, which both surfaces report alike; undefined where the result is there. */
function endedOtherwise({ done, error, response }: Json): JobReport | undefined {
  if (done !== true) return { state: 'in_progress' }
  if (isObject(error)) return { state: 'failed', error: jobError(error) }
  if (!isObject(response)) return { state: 'failed' }
  const inner = isObject(response.generateVideoResponse) ? response.generateVideoResponse : response
  const [reason] = listIn(inner.raiMediaFilteredReasons)
  return reason === undefined
    ? undefined
    : { state: 'failed', error: { code: 'content_filter', message: textIn(reason) ?? '' } }
}

const studioJobs: JobForm = {
  lifeMs: LIFE_MS,
  poll: ({ upstreamId }) => ({ method: 'GET', path: `/${operationPath(upstreamId)}`, body: {} }),
  read(body, target) {
    const answer = stateAnswer(body, target)
    const otherwise = endedOtherwise(answer)
    if (otherwise) return otherwise
    const { generateVideoResponse: made } = answer.response as Json
    const [sample] = isObject(made) ? listIn(made.generatedSamples) : []
    const url = isObject(sample) && isObject(sample.video) ? textIn(sample.video.uri) : undefined
    if (url === undefined) return { state: 'failed', error: { code: '', message: 'The provider names no video.' } }
    return { state: 'completed', result: { kind: 'url', url } }
  },
}

/** `models/veo-3/operations/abc`: each part of it for itself. */
const operationPath = (name: string): string => name.split('/').map(pathSegment).join('/')

const INLINE = 'bytesBase64Encoded'
const BUCKET = /^gs:\/\/([^/]+)\/(.+)$/

const vertexJobs = (surface: Surface): JobForm => ({
  inlineResult: INLINE,
  poll: ({ upstreamId }, { mapping }) => ({
    path: `${surface.models}/${pathSegment(mapping.externalId)}:fetchPredictOperation`,
    body: { operationName: upstreamId },
  }),
  read(body, target) {
    const answer = stateAnswer(body, target)
    const otherwise = endedOtherwise(answer)
    if (otherwise) return otherwise
    const [video] = listIn((answer.response as Json).videos)
    const { [INLINE]: data, gcsUri: address } = objectIn(video)
    if (data !== undefined) return { state: 'completed', result: { kind: 'inline' } }
    const [, bucket, object] = BUCKET.exec(textIn(address) ?? '') ?? []
    if (!bucket || !object) return { state: 'failed', error: { code: '', message: 'The provider names no video.' } }
    return { state: 'completed', result: { kind: 'url', url: storageAddress(bucket, object) } }
  },
  // Cloud Storage takes the token that made the video.
  sharesCredentialWith: ['https://storage.googleapis.com'],
})

const storageAddress = (bucket: string, object: string): string =>
  `https://storage.googleapis.com/${encodeURIComponent(bucket)}/${object.split('/').map(encodeURIComponent).join('/')}`

/** The wire of one surface: Veo by `:predictLongRunning`, whose operation is polled. */
export const videos = (wire: string, surface: Surface): Translator<'videos'> => ({
  op: 'videos',
  wire,
  inlineMedia: true,
  encode: (request, target) => encode(request, target, surface),
  decoder: (_mode, target) => jobDecoder('name', target),
  error,
  job: surface === studio ? studioJobs : vertexJobs(surface),
})
