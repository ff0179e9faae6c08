/** What the files, audio and images of a chat request may come to, by their sizes, their heads, and the trees of PDFs. */
import type { ChatRequest, ContentPart } from '../../core/chat-request.ts'
import { FILE_TOKENS, type Media, PAGE_TOKENS } from '../../core/media.ts'
import { withoutSpace } from '../../core/wire.ts'
import {
  AUDIO_BUDGET,
  type AudioBudget,
  type AudioFile,
  audioLength,
  LEAST_BYTES_PER_SECOND,
} from '../../lib/audio-seconds.ts'
import { AUDIO_HEAD, audioType } from '../../lib/audio-type.ts'
import { DIMENSIONS_HEADS, type Dimensions, imageDimensions } from '../../lib/image-dimensions.ts'
import { IMAGE_HEAD, imageType } from '../../lib/image-type.ts'
import { isAddress } from '../../lib/url.ts'
import { isVideo, videoSeconds } from '../../lib/video-seconds.ts'
import { isPdf, PDF_BUDGET, PDF_HEAD, type PdfBudget, pdfPages } from '../pdf-pages.ts'

/** Gemini's; OpenAI counts 10. */
const AUDIO_TOKENS_PER_SECOND = 32
/** 16 bits at 16 kHz, and 32 kbit/s for all that is compressed: the least that is usual, so that no second is missed. */
const PLAIN_BYTES_PER_SECOND = 32_000
const COMPRESSED_BYTES_PER_SECOND = 4_000
const FILE_BYTES_PER_TOKEN = 16
const TEXT_BYTES_PER_TOKEN = 4
/** Of audio, and of a video, at an address: a quarter of an hour. */
const AUDIO_TOKENS = 15 * 60 * AUDIO_TOKENS_PER_SECOND
/** Of a video with sound: an image a second. */
const VIDEO_TOKENS_PER_SECOND = 300
const VIDEO_TOKENS = 15 * 60 * VIDEO_TOKENS_PER_SECOND
/** No model reads more of a video. */
const MOST_SECONDS = 24 * 3600
/** What is looked at in one request: heads, bytes of PDFs and of videos, and frames of audio. */
const BUDGET: Readonly<Budget> = { heads: 256, ...PDF_BUDGET, ...AUDIO_BUDGET }

interface Budget extends PdfBudget, AudioBudget {
  heads: number
}
const nothing: Media = { images: [], audioTokens: 0, fileTokens: 0 }

const measured = new WeakMap<ChatRequest['messages'], Media>()

/** Reads the heads of images and audio, and the trees of PDFs within bounds, once a request. */
export function mediaOf(messages: ChatRequest['messages']): Media {
  let media = measured.get(messages)
  if (!media) {
    media = mediaIn(messages)
    measured.set(messages, media)
  }
  return media
}

function mediaIn(messages: ChatRequest['messages']): Media {
  const budget = { ...BUDGET }
  const images: (Dimensions | undefined)[] = []
  let audioTokens = 0
  let fileTokens = 0
  let pages = 0
  let unmeasuredTokens = 0
  let unmeasuredAudio = 0
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue
    for (const part of content) {
      if (part.type === 'image_url') images.push(sizeOf(part.image_url.url, budget))
      else if (part.type === 'input_audio') {
        const audio = audioTokensOf(part.input_audio, budget)
        audioTokens += audio.tokens
        unmeasuredAudio += audio.unmeasured
      } else if (part.type === 'file') {
        const type = typeOf(part.file.file_data)
        if (type.startsWith('image/')) images.push(sizeOf(part.file.file_data!, budget))
        else {
          const file = fileTokensOf(part.file, type, budget)
          fileTokens += file.tokens
          pages += file.pages ?? 0
          unmeasuredTokens += file.unmeasured
        }
      }
    }
  }
  return images.length + audioTokens + fileTokens === 0
    ? nothing
    : { images, audioTokens, fileTokens, pages, unmeasuredTokens, unmeasuredAudio }
}

/** The media type of a data URL, as wires read it; '' for anything else. */
const typeOf = (url = ''): string => DATA.exec(url)?.[1]?.trim().toLowerCase() ?? ''
const DATA = /^data:([^;,]{0,250})/i
/** Wires send it as text, or providers read it so. */
const isText = (type: string): boolean => type.startsWith('text/') || type === 'application/json'
/** The base64 of a data URL, or itself. */
const base64Of = (data: string): string => (DATA.test(data) ? data.slice(data.indexOf(',') + 1) : data)

/** Undefined for an address, and where the head of the image does not say it. */
function sizeOf(url: string, budget: Budget): Dimensions | undefined {
  if (!DATA.test(url) || budget.heads-- <= 0) return undefined
  const data = base64Of(url)
  const type = imageType(headOf(data, IMAGE_HEAD))
  if (type === undefined || type === 'image/gif') return undefined
  for (const bytes of DIMENSIONS_HEADS) {
    const head = exactHeadOf(data, bytes)
    const size = head && imageDimensions(head)
    if (size) return size
  }
  return undefined
}

/**
 * The same, or undefined where decoders may read other bytes: one that passes over odd characters sees another image than
 * one that does not.
 */
function exactHeadOf(base64: string, bytes: number): Buffer | undefined {
  const length = Math.floor(bytes / 3) * 4
  const text = withoutSpace(base64.slice(0, 2 * length)).slice(0, length)
  const head = Buffer.from(text, 'base64')
  return head.toString('base64').startsWith(text) ? head : undefined
}

/** Of a file of unknown size, and of audio at an address: the longest prompt that models read. */
const UNMEASURED_TOKENS = 1_048_576

type Audio = Extract<ContentPart, { type: 'input_audio' }>['input_audio']

function audioTokensOf(audio: Audio, budget: Budget): ContentTokens {
  if (isAddress(audio.data)) return likely(AUDIO_TOKENS)
  const { seconds, most } = secondsOf(audio, budget)
  const tokens = Math.ceil(seconds * AUDIO_TOKENS_PER_SECOND)
  const unmeasured = Math.min(UNMEASURED_TOKENS, Math.ceil(most * AUDIO_TOKENS_PER_SECOND) - tokens)
  return { tokens, unmeasured }
}

/** Its first bytes say what it is; the format that the client names counts where they do not. `most`: it is no longer. */
function secondsOf({ data: given, format }: Audio, budget: Budget): { seconds: number; most: number } {
  const data = base64Of(given)
  const size = bytesOf(data)
  const isRead = budget.heads-- > 0
  const length = isRead ? audioLength(new Base64File(data, size), budget) : undefined
  if (length?.counted) return { seconds: length.seconds, most: length.seconds }
  const isPlain = PLAIN.has(format) && isRead && !audioType(headOf(data, AUDIO_HEAD))
  const bySize = size / (isPlain ? PLAIN_BYTES_PER_SECOND : COMPRESSED_BYTES_PER_SECOND)
  // A head may say less than its samples come to.
  const seconds = Math.max(length?.seconds ?? 0, bySize)
  return { seconds, most: isPlain || length ? seconds : size / LEAST_BYTES_PER_SECOND }
}
const PLAIN = new Set(['wav', 'aiff', 'pcm'])

/** A file in base64, which is decoded as far as it is read. */
class Base64File implements AudioFile {
  readonly size: number
  readonly #base64: string
  #head: Buffer | undefined
  #whole: Buffer | undefined

  constructor(base64: string, size: number) {
    this.#base64 = base64
    this.size = size
  }

  get pieces(): Iterable<Buffer> {
    return { [Symbol.iterator]: () => this.#read() }
  }

  *#read(): Generator<Buffer> {
    this.#head ??= headOf(this.#base64, AUDIO_READ)
    yield this.#head
    this.#whole ??= Buffer.from(this.#base64, 'base64')
    yield this.#whole.subarray(this.#head.length)
  }
}
/** Enough for files whose head says their length, and for frames that begin behind the head of WAV. */
const AUDIO_READ = 24 * 1024

type File = Extract<ContentPart, { type: 'file' }>['file']

function fileTokensOf({ file_data: data, file_id: id }: File, type: string, budget: Budget): ContentTokens {
  if (data === undefined) return id !== undefined && isAddress(id) ? likely(VIDEO_TOKENS) : known(FILE_TOKENS)
  if (isAddress(data)) return likely(FILE_TOKENS)
  const base64 = base64Of(data)
  const size = bytesOf(base64)
  if (isText(type)) return known(Math.ceil(size / TEXT_BYTES_PER_TOKEN))
  const bySize = Math.ceil(size / FILE_BYTES_PER_TOKEN)
  if (budget.heads-- <= 0) return likely(Math.max(bySize, FILE_TOKENS))
  const head = headOf(base64, PDF_HEAD)
  const isRead = size <= budget.read
  const bytes = isRead && (isVideo(head) || isPdf(head)) ? Buffer.from(base64, 'base64') : undefined
  if (isVideo(head)) {
    const tokens = bytes ? videoTokens(bytes, budget) : 0
    return tokens > 0 ? known(Math.max(bySize, tokens)) : likely(bySize)
  }
  if (!isPdf(head)) return likely(bySize)
  const pages = bytes && pdfPages(bytes, budget)
  if (pages === undefined) return likely(Math.max(bySize, FILE_TOKENS))
  return known(Math.max(bySize, pages * PAGE_TOKENS), pages)
}

/** Of one file, or one piece of audio; `unmeasured` is what more it may have. */
interface ContentTokens {
  readonly tokens: number
  readonly unmeasured: number
  readonly pages?: number | undefined
}
const known = (tokens: number, pages?: number): ContentTokens => ({ tokens, unmeasured: 0, pages })
const likely = (tokens: number): ContentTokens => ({ tokens, unmeasured: UNMEASURED_TOKENS })

function videoTokens(bytes: Buffer, budget: Budget): number {
  budget.read -= bytes.length
  return Math.ceil(Math.min(videoSeconds(bytes, budget), MOST_SECONDS) * VIDEO_TOKENS_PER_SECOND)
}

/** The first bytes of base64. */
const headOf = (base64: string, bytes: number): Buffer =>
  Buffer.from(base64.slice(0, Math.ceil((bytes * 4) / 3)), 'base64')

/** Of base64. */
const bytesOf = (base64: string): number =>
  (base64.length * 3) / 4 - (base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0)
