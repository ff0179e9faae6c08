/** Videos: `POST /v1/videos`. */
import type { Operation, Requirement } from '../../core/operation.ts'
import type { Mapping } from '../../core/translator.ts'
import { supports } from '../requirements.ts'
import { demo } from './demo.ts'
import { expectedUsage, videoJob, videoTerms } from './job.ts'
import { secondsFor, type VideoRequest } from './request.ts'

/** A route is explained for requests that hold nothing but a model. */
const has = (list: readonly unknown[] | undefined): boolean => list !== undefined && list.length > 0

const MAX_REFERENCE_IMAGES = 3
const mostImages = ({ maxReferenceImages = MAX_REFERENCE_IMAGES }: Mapping): number => maxReferenceImages

/** Size, length, sound and input images. */
const videoRequirements: readonly Requirement<VideoRequest>[] = [
  {
    param: 'size',
    what: 'this size',
    offers: ({ videoSizes }) => videoSizes,
    needed: () => true,
    met: ({ videoSizes }, { size }) => videoSizes?.includes(size) !== false,
  },
  {
    param: 'seconds',
    what: 'this length',
    offers: ({ videoSeconds }) => videoSeconds?.map(String),
    needed: ({ seconds }) => seconds !== undefined,
    met: ({ videoSeconds }, { seconds }) => videoSeconds?.includes(seconds!) !== false,
  },
  supports('audio', 'videos with sound', 'video_audio', ({ audio }) => audio === true),
  supports('audio', 'videos without sound', 'video_without_audio', ({ audio }) => audio === false),
  supports('image', 'a first frame', 'image_to_video', ({ image }) => image !== undefined),
  supports('last_frame', 'a last frame', 'last_frame', ({ last_frame: last }) => last !== undefined),
  supports('reference_images', 'reference images', 'reference_images', one => has(one.reference_images)),
  {
    param: 'reference_images',
    what: 'so many reference images',
    offers: mostImages,
    needed: ({ reference_images: images }) => has(images),
    met: (mapping, { reference_images: images }) => images.length <= mostImages(mapping),
  },
  supports('reference_videos', 'reference videos', 'reference_videos', one => has(one.reference_videos)),
  supports('reference_audios', 'reference audio', 'reference_audios', one => has(one.reference_audios)),
]

/** Priced by the second, or by tokens; a request makes a job. */
export const videos: Operation<'videos'> = {
  name: 'videos',
  impliedBy: ({ output }) => output.includes('video'),
  isPriced: ({ perSecond, rates: { completion } }) => perSecond !== undefined || completion !== undefined,
  autoOption: 'auto_videos',
  requirements: videoRequirements,
  // Nothing of a prompt is charged for.
  promptSize: () => 0,
  extras(request, { model }) {
    return expectedUsage(request, Math.max(request.seconds ?? 0, ...lengthsOf(request, model.mappings)))
  },
  terms: ({ size, audio }) => videoTerms({ size, audio: audio !== false }),
  tuning: { seed: 'seed', negative_prompt: 'negative_prompt' },
  neverReplayed: true,
  job: videoJob,
  demo,
}

/** Where a request names no length, that of the mapping that takes the most for it. */
const lengthsOf = (
  request: Readonly<VideoRequest>,
  mappings: readonly { videoSeconds?: readonly number[] | undefined }[],
) => (mappings.length === 0 ? [secondsFor(request, {})] : mappings.map(mapping => secondsFor(request, mapping)))
