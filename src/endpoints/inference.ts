/** Endpoints that run a model and are one row each; others have a file of their own. */
import { anthropicMessages, countTokens as countTokensCodec } from '../codecs/anthropic-messages.ts'
import { completions as completionsCodec } from '../codecs/completions.ts'
import { decisions as decisionsCodec } from '../codecs/decisions.ts'
import { imageEdits as imageEditsCodec, images as imagesCodec } from '../codecs/images.ts'
import { moderations as moderationsCodec } from '../codecs/moderations.ts'
import { ocr as ocrCodec } from '../codecs/ocr.ts'
import { openAiChat } from '../codecs/openai-chat.ts'
import { openAiEmbeddings } from '../codecs/openai-embeddings.ts'
import { openAiResponses } from '../codecs/openai-responses.ts'
import { rerank as rerankCodec } from '../codecs/rerank.ts'
import { streamedError } from '../codecs/responses/encoder.ts'
import { speech as speechCodec } from '../codecs/speech.ts'
import { transcriptions as transcriptionsCodec, translations as translationsCodec } from '../codecs/transcriptions.ts'
import type { Codec } from '../core/codec.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Event } from '../core/event.ts'
import type { Operation } from '../core/operation.ts'
import { only } from '../core/reply.ts'
import type { TokenCount } from '../core/wire.ts'
import { PAYMENT_REQUIRED } from '../lib/gateway-error.ts'
import { chat as chatOperation } from '../operations/chat/index.ts'
import { decisions } from '../operations/decisions/index.ts'
import { embeddings as embeddingsOperation } from '../operations/embeddings/index.ts'
import { imageEdits, images as imagesOperation } from '../operations/images/index.ts'
import { moderations as moderationsOperation } from '../operations/moderations/index.ts'
import { ocr as ocrOperation } from '../operations/ocr/index.ts'
import { rerank as rerankOperation } from '../operations/rerank/index.ts'
import { speech as speechOperation } from '../operations/speech/index.ts'
import { transcriptions as transcriptionsOperation, translations } from '../operations/transcriptions/index.ts'

/** Nothing is generated, so nothing is used and charged. */
const NO_USAGE = { prompt: 0, completion: 0, request: 0 }

/** Replaces provider failures; invalid or forbidden requests are still refused. */
export const estimated: NonNullable<Endpoint['instead']> = (ex, error) => {
  const { upstreamStatus, failover, status } = error
  const isProviders = upstreamStatus !== undefined || failover || status >= 500 || status === PAYMENT_REQUIRED
  if (!ex.request || !isProviders) return undefined
  const count: TokenCount = { tokens: ex.prompt.usage.prompt ?? 0 }
  const events = only<Event>({ type: 'usage', usage: NO_USAGE }, { type: 'result', value: count })
  return { status: 200, headers: ['x-gateway-estimated', 'true'], events }
}

const MIB = 1024 * 1024
const row = { method: 'POST', chain: 'inference', serve: 'upstream' } as const
/** A row of an operation that is no chat. */
function media(name: string, path: string, operation: Operation, codec: Codec, bodyLimit = 32 * MIB): Endpoint {
  return { ...row, name, path, operation, codec, bodyLimit }
}
const chatRow = { ...row, operation: chatOperation, bodyLimit: 32 * MIB } as const

/** OpenAI's chat completions, streamed or whole. */
export const chat: Endpoint = { ...chatRow, name: 'chat', path: '/v1/chat/completions', codec: openAiChat }

/** OpenAI's legacy completions, served as chat. */
export const completions: Endpoint = {
  ...chatRow,
  name: 'completions',
  path: '/v1/completions',
  codec: completionsCodec,
}

/** Anthropic's messages, streamed or whole. */
export const messages: Endpoint = { ...chatRow, name: 'messages', path: '/v1/messages', codec: anthropicMessages }

/** Anthropic's token count. Costs nothing; the gateway's estimate replaces a provider's failure. */
export const countTokens: Endpoint = {
  ...chatRow,
  name: 'count_tokens',
  path: '/v1/messages/count_tokens',
  codec: countTokensCodec,
  counts: true,
  instead: estimated,
}

/** OpenAI's responses, streamed or whole. What the project stores, `storedResponses` reads. */
export const responses: Endpoint = {
  ...chatRow,
  name: 'responses',
  path: '/v1/responses',
  codec: openAiResponses,
  errorAnswer: streamedError,
}

/** OpenAI's embeddings. 300,000 token ids, its limit per request, come in up to 2,048 inputs, beside the other fields. */
export const embeddings: Endpoint = {
  ...media('embeddings', '/v1/embeddings', embeddingsOperation, openAiEmbeddings),
  maxValues: 310_000,
}

/** OpenAI's moderations. */
export const moderations = media('moderations', '/v1/moderations', moderationsOperation, moderationsCodec)

/** Mistral's OCR of documents. */
export const ocr = media('ocr', '/v1/ocr', ocrOperation, ocrCodec, 64 * MIB)

/** Rerank, and the same for Cohere's own client. */
export const rerank: readonly Endpoint[] = [
  media('rerank', '/v1/rerank', rerankOperation, rerankCodec),
  media('rerank', '/v2/rerank', rerankOperation, rerankCodec),
]

/** Typed decisions: up to 100 questions about one state; each answer has the type of its question. */
export const systemone = media('systemone', '/v1/systemone', decisions, decisionsCodec, 4 * MIB)

/** OpenAI's text to speech; answers audio bytes or a stream of events. */
export const speech = media('speech', '/v1/audio/speech', speechOperation, speechCodec, 4 * MIB)

const audioRow = { ...row, name: 'transcriptions', body: ['multipart', 'json'], bodyLimit: 64 * MIB } as const

/** OpenAI's transcriptions and translations of audio: forms, or JSON with an address in place of a file. */
export const transcriptions: readonly Endpoint[] = [
  { ...audioRow, path: '/v1/audio/transcriptions', operation: transcriptionsOperation, codec: transcriptionsCodec },
  { ...audioRow, path: '/v1/audio/translations', operation: translations, codec: translationsCodec },
]

/** OpenAI's image generation and edits; edits are JSON or a form. */
export const images: readonly Endpoint[] = [
  media('images', '/v1/images/generations', imagesOperation, imagesCodec),
  { ...media('images', '/v1/images/edits', imageEdits, imageEditsCodec, 64 * MIB), body: ['json', 'multipart'] },
]
