/** Estimates audio where no provider counts it (docs/money.md#media-prices). */
import type { Model } from '../core/translator.ts'
import type { Usage } from '../core/usage.ts'

/** Tokens of a second in the prompt of a model that names none: the most that a vendor counts. */
export const MAX_TOKENS_PER_SECOND = 32
/** Tokens of a second that is spoken in an answer. */
const SPEECH_TOKENS_PER_SECOND = 21
/** Tokens of a second that a model transcribes or converses about, and of its transcript. */
const HEARD_TOKENS_PER_SECOND = 10
const TRANSCRIPT_TOKENS_PER_SECOND = 4
const HOUR_SECONDS = 3600

/** Tokens of audio in the prompt of a chat; `model` is undefined before there is a target. */
export const promptAudioTokens = (seconds: number, model: Pick<Model, 'audioTokens'> | undefined): number =>
  Math.ceil(seconds * (model?.audioTokens ?? MAX_TOKENS_PER_SECOND))

export const speechTokens = (seconds: number): number => Math.ceil(seconds * SPEECH_TOKENS_PER_SECOND)

export const heardTokens = (seconds: number): number => Math.ceil(seconds * HEARD_TOKENS_PER_SECOND)

/** Usage of a transcript, in hours and in tokens, with so many tokens of text in its prompt. */
export function transcriptUsage(seconds: number, promptTokens = 0): Usage {
  const audio = heardTokens(seconds)
  return {
    input_audio_hour: seconds / HOUR_SECONDS,
    input_audio: audio,
    prompt: audio + promptTokens,
    completion: Math.ceil(seconds * TRANSCRIPT_TOKENS_PER_SECOND),
  }
}
