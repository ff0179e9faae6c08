/** Videos: `POST /v1/videos`. */
import type { Operation } from '../../core/operation.ts'
import { demo } from './demo.ts'
import { expectedUsage, videoJob, videoTerms } from './job.ts'
import { secondsFor, type VideoRequest } from './request.ts'
import { videoRequirements } from './requirements.ts'

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
