/**
 * OpenAI's wires that most providers speak, each a little differently: `openai.chat`, `openai.embeddings`,
 * `openai.images`, `openai.image-edits`, `openai.moderations`, `openai.speech`, `openai.transcriptions`, `openai.translations`,
 * `openai.realtime`.
 */
import type { Plugin, Translator } from '../src/plugin.ts'
import { encode as encodeEmbeddings } from './openai/embeddings.ts'
import { encode, MAX_STOPS } from './openai/encode.ts'
import { imageEdits, images } from './openai/images.ts'
import { moderations } from './openai/moderations.ts'
import { realtime } from './openai/realtime.ts'
import { speech } from './openai/speech.ts'
import { transcriptions, translations } from './openai/transcriptions.ts'
import { videos } from './openai/videos.ts'
import { ChatDecoder } from './shared/chat-completions/decoder.ts'
import { openAiFormWire } from './shared/embeddings/openai-form.ts'
import { plainError } from './shared/error.ts'
import { first } from './shared/stops.ts'

const chat: Translator<'chat'> = {
  op: 'chat',
  wire: 'openai.chat',
  customTools: true,
  takesStop: first(MAX_STOPS),
  encode,
  decoder: (mode, target, input) => new ChatDecoder(mode, target, input?.n ?? 1),
  error: plainError,
}

/** OpenAI's API: Chat, Embeddings, Images, Videos, Moderations, Audio and Realtime. */
export const plugin = {
  wires: [
    chat,
    openAiFormWire('openai.embeddings', encodeEmbeddings),
    images,
    imageEdits,
    videos,
    moderations,
    speech,
    transcriptions,
    translations,
    realtime,
  ] as const,
} satisfies Plugin
