/** `POST /v1/audio/transcriptions` and `/v1/audio/translations` (docs/contract.md#transcriptions). */

import type { Operation, Requirement, SimulatedRequest, Simulation } from '../../core/operation.ts'
import type { Mapping } from '../../core/translator.ts'
import { estimateTokens, TOKEN_BYTES, textSize } from '../../core/usage.ts'
import { mediaSeconds } from '../../media/length.ts'
import { MEDIA_BUDGET, type MediaFile, PiecedFile } from '../../media/source.ts'
import { transcriptUsage } from '../../metering/audio.ts'
import { supports } from '../requirements.ts'
import { likelySeconds, needsSpeakers, needsTimes, type TranscriptionRequest, unmeasuredSeconds } from './request.ts'

const DEMO_BYTES_PER_SECOND = 8000

function transcribe({ body }: SimulatedRequest): object {
  const duration = Math.round((body.length / DEMO_BYTES_PER_SECOND) * 1000) / 1000
  const text = `This is a simulated transcript of ${body.length} bytes.`
  return {
    task: 'transcribe',
    text,
    language: 'english',
    duration,
    segments: [{ id: 0, start: 0, end: duration, text }],
  }
}
const simulate: Simulation = request => ({ json: transcribe(request) })

/** Simulates OpenAI's audio API: the transcript says how large the file is. */
const demo: Readonly<Record<string, Simulation>> = {
  '/audio/transcriptions': simulate,
  '/audio/translations': simulate,
}

const SPEAKERS = 'telling speakers apart'

type Name = 'transcriptions' | 'translations'

const requirements = (name: Name): readonly Requirement<TranscriptionRequest>[] => {
  /** A wire that makes times of its own accord needs no word in the manifest. */
  const isTimed = ({ supports, wires }: Mapping) => supports.has('timestamps') || wires.get(name)?.alwaysTimed === true
  return [
    {
      param: 'response_format',
      what: 'timestamps',
      advice: 'Ask for "json" or "text".',
      needed: needsTimes,
      met: isTimed,
    },
    supports('response_format', SPEAKERS, 'diarization', one => needsSpeakers(one) && !one.diarize),
    supports('diarize', SPEAKERS, 'diarization', ({ diarize }) => diarize),
    {
      param: 'file',
      what: 'a file of so many bytes',
      code: 'request_too_large',
      status: 413,
      needed: ({ file }) => file !== undefined,
      offers: ({ maxFile }) => maxFile,
      met: ({ maxFile = Infinity }, { file }) => file!.size <= maxFile,
    },
  ]
}

async function measure(request: TranscriptionRequest, file: MediaFile): Promise<void> {
  request.seconds = await mediaSeconds(file, { ...MEDIA_BUDGET })
}

const common: Omit<Operation<'transcriptions'>, 'name' | 'requirements'> = {
  // Models say that they are for this: nothing about modalities does.
  impliedBy: () => false,
  isPriced: ({ rates: { prompt, completion, input_audio_hour } }) =>
    input_audio_hour !== undefined || (prompt !== undefined && completion !== undefined),
  inspect: request => (request.file ? measure(request, new PiecedFile(request.file)) : undefined),
  promptSize: ({ prompt = '' }) => textSize(prompt),
  extras: request =>
    transcriptUsage(likelySeconds(request), estimateTokens(textSize(request.prompt ?? '') + TOKEN_BYTES)),
  unmeasured(request) {
    const seconds = unmeasuredSeconds(request)
    return seconds > 0 ? transcriptUsage(seconds) : undefined
  },
  tuning: { language: 'language', prompt: 'prompt', temperature: 'temperature' },
  neverReplayed: true,
  demo,
}

/** `/v1/audio/transcriptions`. */
export const transcriptions: Operation<'transcriptions'> = {
  ...common,
  name: 'transcriptions',
  requirements: requirements('transcriptions'),
}
/** `/v1/audio/translations`: the same into English. */
export const translations: Operation<'translations'> = {
  ...common,
  name: 'translations',
  requirements: requirements('translations'),
}
