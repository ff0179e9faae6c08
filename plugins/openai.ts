/**
 * OpenAI's wires that most providers speak, each a little differently: `openai.chat`, `openai.embeddings`,
 * `openai.images`, `openai.image-edits`, `openai.moderations`, `openai.speech`, `openai.transcriptions`, `openai.translations`,
 * `openai.realtime`.
 */
import type {
  EmbeddingRequest,
  Json,
  ModerationRequest,
  ModerationResult,
  Plugin,
  Target,
  Translator,
  WireRequest,
} from '../src/plugin.ts'
import { encode, MAX_STOPS } from './openai/encode.ts'
import { imageEdits, images } from './openai/images.ts'
import { realtime } from './openai/realtime.ts'
import { speech } from './openai/speech.ts'
import { transcriptions, translations } from './openai/transcriptions.ts'
import { videos } from './openai/videos.ts'
import { plainError } from './shared/answer.ts'
import { ChatDecoder } from './shared/chat-completions/decoder.ts'
import { openAiFormWire } from './shared/embeddings/openai-form.ts'
import { isFlag, isScore, isTypes, membersOf, moderationWire } from './shared/moderations.ts'
import { first } from './shared/stops.ts'
import { withClientNames } from './shared/tool-name.ts'

const encodeModeration = ({ input }: Readonly<ModerationRequest>, { mapping }: Target): WireRequest => ({
  path: '/moderations',
  body: { model: mapping.externalId, input },
})

function readModeration({
  flagged,
  categories,
  category_scores,
  category_applied_input_types,
}: Json): ModerationResult {
  const found = membersOf(categories, isFlag)
  return {
    flagged: typeof flagged === 'boolean' ? flagged : Object.values(found).includes(true),
    categories: found,
    category_scores: membersOf(category_scores, isScore),
    category_applied_input_types: membersOf(category_applied_input_types, isTypes),
  }
}

/** OpenAI's "Create moderation" API, `POST /moderations`. */
const moderations = moderationWire('openai.moderations', encodeModeration, readModeration)

/** Inputs are sent unchanged, including token ids. */
function encodeEmbeddings(request: Readonly<EmbeddingRequest>, { mapping }: Target): WireRequest {
  const { input, encoding_format, dimensions, user } = request
  return {
    path: '/embeddings',
    body: {
      model: mapping.externalId,
      input,
      ...(encoding_format != null && { encoding_format }),
      ...(dimensions != null && { dimensions }),
      ...(user != null && { user }),
    },
  }
}

const chat: Translator<'chat'> = {
  op: 'chat',
  wire: 'openai.chat',
  customTools: true,
  takesStop: first(MAX_STOPS),
  encode,
  decoder: (mode, target, input) => withClientNames(new ChatDecoder(mode, target, input?.n ?? 1), input),
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
