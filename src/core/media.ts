/** What the media of a request may come to, estimated by their sizes before they are read. */
import type { ChatRequest, ContentPart } from './chat-request.ts'
import type { Usage } from './usage.ts'

/** Estimates, except `images`, which is an exact number. */
export interface Media {
  readonly images: number
  readonly audioTokens: number
  readonly fileTokens: number
}

/** Of an image whose provider has no price for each: what Anthropic and OpenAI count for a large one. */
export const IMAGE_PROMPT_TOKENS = 1600
/** Gemini's; OpenAI counts 10. */
const AUDIO_TOKENS_PER_SECOND = 32
/** 16 bits at 16 kHz, and 32 kbit/s for all that is compressed: the least that is usual, so that no second is missed. */
const PLAIN_BYTES_PER_SECOND = 32_000
const COMPRESSED_BYTES_PER_SECOND = 4_000
/** A page of 30 kB has about 2,000 tokens: its text, and the image of it. */
const FILE_BYTES_PER_TOKEN = 16
/** Of a file that only its address is known of: a dozen pages; of such audio: a quarter of an hour. */
const FILE_TOKENS = 24_000
const AUDIO_TOKENS = 15 * 60 * AUDIO_TOKENS_PER_SECOND
/** Pages that money is held for, for each tool of a provider that reads them. */
const MAX_PAGES = 10

/** Pages that a tool of a provider may read: the caller's limit up to a bound, or the bound where there is none. */
export const pagesOf = (limit?: unknown): number =>
  typeof limit === 'number' ? Math.max(1, Math.min(limit, MAX_PAGES)) : MAX_PAGES

/** Adds pages that a provider's own tools may read to the estimate of a prompt. */
export function addPages(usage: Usage, pages = 0): void {
  usage.prompt = (usage.prompt ?? 0) + pages * FILE_TOKENS
}

const nothing: Media = { images: 0, audioTokens: 0, fileTokens: 0 }

/** Adds up sizes only, so that it costs the same for small and for large media. */
export function mediaOf(messages: ChatRequest['messages']): Media {
  let images = 0
  let audioTokens = 0
  let fileTokens = 0
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue
    for (const part of content) {
      if (part.type === 'image_url') images++
      else if (part.type === 'input_audio') audioTokens += audioTokensOf(part.input_audio)
      else if (part.type === 'file') {
        if (part.file.file_data?.startsWith('data:image/')) images++
        else fileTokens += fileTokensOf(part.file)
      }
    }
  }
  return images + audioTokens + fileTokens === 0 ? nothing : { images, audioTokens, fileTokens }
}

function audioTokensOf({ data, format }: Extract<ContentPart, { type: 'input_audio' }>['input_audio']): number {
  if (/^https?:/i.test(data.slice(0, 6))) return AUDIO_TOKENS
  const isPlain = format === 'wav' || format === 'aiff' || format === 'pcm'
  const seconds = bytesOf(data) / (isPlain ? PLAIN_BYTES_PER_SECOND : COMPRESSED_BYTES_PER_SECOND)
  return Math.ceil(seconds * AUDIO_TOKENS_PER_SECOND)
}

const fileTokensOf = ({ file_data: data }: Extract<ContentPart, { type: 'file' }>['file']): number =>
  data === undefined || data.startsWith('http') ? FILE_TOKENS : Math.ceil(bytesOf(data) / FILE_BYTES_PER_TOKEN)

/** Of base64. */
const bytesOf = ({ length }: string): number => (length * 3) / 4
