/** Client wire of `POST {prefix}/language-model`: the AI SDK's gateway protocol. */
import type { Codec } from '../core/codec.ts'
import { decode } from './ai-sdk/decode.ts'
import { StreamEncoder, WholeEncoder } from './ai-sdk/encoders.ts'
import { aiSdkError } from './ai-sdk/error.ts'
import { fieldOf } from './ai-sdk/fields.ts'
import { EVENT_STREAM } from './event-stream.ts'
import { json } from './json.ts'
import { openAiChat } from './openai-chat.ts'

/** Versions 2 to 4 of the protocol; `versionOf` finds the one of a request. */
export const aiSdk = {
  wire: 'ai-sdk.language-model',
  decode,
  encoder: ex => (ex.streaming ? new StreamEncoder(ex) : new WholeEncoder(ex)),
  heartbeat: { contentType: EVENT_STREAM, text: ': waiting for the provider\n\n' },
  fieldOf,
  error: aiSdkError,
  prepare: openAiChat.prepare,
} satisfies Codec<'chat'>

/** For endpoints of the protocol besides language models. */
export const aiSdkValue: Codec<never> = { ...json, wire: 'ai-sdk.value', error: aiSdkError }
