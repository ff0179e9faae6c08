/** What audio of a chat request may come to, by its frames, its head, or its size. */
import type { ContentPart } from '../../core/chat-request.ts'
import { type AudioFile, audioLength, LEAST_BYTES_PER_SECOND } from '../../lib/audio-seconds.ts'
import { audioType } from '../../lib/audio-type.ts'
import { isAddress } from '../../lib/url.ts'
import { type ContentTokens, likely, UNMEASURED_TOKENS } from './content-tokens.ts'
import { headOf, type MediaBudget, type MediaData, mediaData } from './media-data.ts'

/** Gemini's; OpenAI counts 10. */
const TOKENS_PER_SECOND = 32
/** 16 bits at 16 kHz, and 32 kbit/s for all that is compressed: the least that is usual, so that no second is missed. */
const PLAIN_BYTES_PER_SECOND = 32_000
const COMPRESSED_BYTES_PER_SECOND = 4_000
/** Of audio at an address: a quarter of an hour. */
const ADDRESS_TOKENS = 15 * 60 * TOKENS_PER_SECOND

type Audio = Extract<ContentPart, { type: 'input_audio' }>['input_audio']

export function audioTokens({ data: given, format }: Audio, budget: MediaBudget): ContentTokens {
  if (isAddress(given)) return likely(ADDRESS_TOKENS)
  const { seconds, most } = secondsOf(mediaData(given, budget), format, budget)
  const tokens = Math.ceil(seconds * TOKENS_PER_SECOND)
  const unmeasured = Math.min(UNMEASURED_TOKENS, Math.ceil(most * TOKENS_PER_SECOND) - tokens)
  return { tokens, unmeasured, pages: 0 }
}

/** Its first bytes say what it is; the format that the client names counts where they do not. `most`: it is no longer. */
function secondsOf(data: MediaData, format: string, budget: MediaBudget): { seconds: number; most: number } {
  const file = budget.heads-- > 0 ? new Base64File(data) : undefined
  const length = file && audioLength(file, budget)
  if (length?.counted) return { seconds: length.seconds, most: length.seconds }
  const isPlain = file !== undefined && PLAIN.has(format) && !audioType(file.head)
  const bySize = data.size / (isPlain ? PLAIN_BYTES_PER_SECOND : COMPRESSED_BYTES_PER_SECOND)
  // A head may say less than its samples come to.
  const seconds = Math.max(length?.seconds ?? 0, bySize)
  return { seconds, most: isPlain || length ? seconds : data.size / LEAST_BYTES_PER_SECOND }
}

const PLAIN = new Set(['wav', 'aiff', 'pcm'])

/** A file in base64, which is decoded as far as it is read. */
class Base64File implements AudioFile {
  readonly size: number
  readonly head: Buffer
  readonly #base64: string
  #whole: Buffer | undefined

  constructor({ base64, size }: MediaData) {
    this.#base64 = base64
    this.size = size
    this.head = headOf(base64, AUDIO_READ)
  }

  get pieces(): Iterable<Buffer> {
    return { [Symbol.iterator]: () => this.#read() }
  }

  *#read(): Generator<Buffer> {
    yield this.head
    this.#whole ??= Buffer.from(this.#base64, 'base64')
    yield this.#whole.subarray(this.head.length)
  }
}
/** Enough for files whose head says their length, and for frames that begin behind the head of WAV. */
const AUDIO_READ = 24 * 1024
