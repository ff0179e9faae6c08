/** What the audio of a prompt comes to in tokens. */
import type { Model } from '../core/translator.ts'

/** Of a second, for models that do not say it: the most that a vendor counts. */
export const MOST_AUDIO_TOKENS = 32

/** Of so many seconds; `model` is undefined before there is a target. */
export const audioTokensOf = (seconds: number, model: Pick<Model, 'audioTokens'> | undefined): number =>
  Math.ceil(seconds * (model?.audioTokens ?? MOST_AUDIO_TOKENS))
