/** Realtime sessions: `GET /v1/realtime`, and the client secrets that open them (docs/realtime.md). */

import type { Operation } from '../../core/operation.ts'
import type { Mapping } from '../../core/translator.ts'
import { demoSession } from './demo.ts'
import type { RealtimeRequest } from './request.ts'

/** Priced by tokens of each response, or by the hour of audio. */
export const realtime: Operation<'realtime'> = {
  name: 'realtime',
  impliedBy: () => false,
  isPriced: ({ rates: { prompt, completion, input_audio_hour } }) =>
    (prompt !== undefined && completion !== undefined) || input_audio_hour !== undefined,
  requirements: [
    {
      param: 'model',
      what: 'realtime sessions',
      needed: () => true,
      met: ({ supports }) => supports.has('realtime'),
    },
    {
      param: 'model',
      what: 'conversations: open a session with intent=transcription',
      needed: ({ transcribes }) => !transcribes,
      met: ({ model }) => !model.operations?.includes('transcriptions'),
    },
    {
      param: 'session.audio.output.voice',
      what: 'this voice',
      code: 'voice_not_supported',
      offers: ({ voices }) => voices && Object.keys(voices),
      needed: request => voiceOf(request) !== undefined,
      met: ({ voices }: Mapping, request) => !voices || Object.hasOwn(voices, voiceOf(request)!),
    },
  ],
  promptSize: () => 0,
  tuning: {},
  isSession: true,
  neverReplayed: true,
  demoSession,
}

function voiceOf({ session }: RealtimeRequest): string | undefined {
  const voice = session?.type === 'realtime' ? session.audio?.output?.voice : undefined
  return typeof voice === 'string' ? voice : undefined
}
