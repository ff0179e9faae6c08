/** Measures the files, audio and images of a chat request, by their content and their sizes. */

import type { ChatRequest, ContentPart, Message } from '../../core/chat-request.ts'
import type { Media } from '../../core/media.ts'
import { isObject } from '../../json/json.ts'
import { isAddress } from '../../lib/url.ts'
import { type Dimensions, imageDimensions } from '../../media/image.ts'
import { mediaSeconds } from '../../media/length.ts'
import { Base64File, MEDIA_BUDGET, type MediaBudget, type MediaFile } from '../../media/source.ts'
import { FILE_TOKENS, tokensByContent, tokensBySize, VIDEO_TOKENS } from '../../media/tokens.ts'
import { MEDIA_HEAD_BYTES, mediaTypeOf } from '../../media/type.ts'
import { MAX_TOKENS_PER_SECOND } from '../../metering/audio.ts'
import { dataHeadOf, parseDataUrl, withoutSpace } from '../../wire/wire.ts'

/** Media of one part. */
interface PartMedia {
  /** Undefined for a part that is no image. */
  readonly image?: { readonly size: Dimensions | undefined }
  readonly seconds: number
  readonly tokens: number
  readonly pages: number
  /** Amounts beyond the estimate that a part may have when the provider fetches it. */
  readonly unmeasured?: { readonly tokens?: number; readonly seconds?: number }
}

/** The longest prompt that models read, and the longest audio in one. */
const UNMEASURED_TOKENS = 1_048_576
const UNMEASURED_SECONDS = UNMEASURED_TOKENS / MAX_TOKENS_PER_SECOND
/** Audio at an address: a quarter of an hour. */
const ADDRESS_SECONDS = 15 * 60
/** 16 bits at 16 kHz, and 32 kbit/s for all that is compressed: the least that is usual, so that no second is missed. */
const PLAIN_BYTES_PER_SECOND = 32_000
const COMPRESSED_BYTES_PER_SECOND = 4_000
/** Data that is no base64 is decoded up to so many characters. */
const MAX_PLAIN_CHARACTERS = 64 * 1024

/** Parts whose type is determined. */
const MAX_TYPED_PARTS = 128

const nothing: Media = { images: [], audioSeconds: 0, fileTokens: 0 }
/** Messages without media that are walked again, rather than remembered. */
const MAX_UNCACHED_MESSAGES = 16

/** Results by part. Filters build new messages from the same parts. */
const measured = new WeakMap<ContentPart, PartMedia>()
const sums = new WeakMap<ChatRequest['messages'], Media>()

/** Returns the known media of a request; by size until {@link measureMedia} has read the files. */
export function mediaOf(messages: ChatRequest['messages']): Media {
  let media = sums.get(messages)
  if (!media) {
    media = mediaIn(messages)
    if (media !== nothing || messages.length > MAX_UNCACHED_MESSAGES) sums.set(messages, media)
  }
  return media
}

/** Looks into the media of a request, once for each part and within one budget. Undefined where there is nothing to look at. */
export function measureMedia(messages: ChatRequest['messages']): Promise<void> | undefined {
  const all = mediaParts(messages)
  if (all.length === 0) return undefined
  const parts = all.filter(part => !measured.has(part))
  return parts.length === 0 ? undefined : measureParts(parts, messages)
}

async function measureParts(parts: readonly ContentPart[], messages: ChatRequest['messages']): Promise<void> {
  const budget = { ...MEDIA_BUDGET }
  for (const part of parts.slice(0, MAX_TYPED_PARTS)) measured.set(part, (await looked(part, budget)) ?? bySize(part))
  sums.delete(messages)
}

const NO_PARTS: readonly ContentPart[] = []

/** Makes no list for a request without media, as most are. */
function mediaParts(messages: ChatRequest['messages']): readonly ContentPart[] {
  let parts: ContentPart[] | undefined
  for (const message of messages) {
    const { content, images } = message as Message & { images?: unknown }
    if (Array.isArray(images)) {
      for (const image of images) {
        if (!isMedia(image)) continue
        parts ??= []
        parts.push(image)
      }
    }
    if (!Array.isArray(content)) continue
    for (const part of content) {
      if (part.type === 'text' || part.type === 'refusal') continue
      parts ??= []
      parts.push(part)
    }
  }
  return parts ?? NO_PARTS
}

/** The members of each kind of media, one of which says where its data is. */
const SOURCES: Readonly<Record<string, readonly string[]>> = {
  image_url: ['url'],
  input_audio: ['data'],
  file: ['file_data', 'file_id'],
}

/** Whether an entry of a model turn's `images`, which no schema reads, is media. */
function isMedia(entry: unknown): entry is ContentPart {
  if (!isObject(entry) || typeof entry.type !== 'string' || !Object.hasOwn(SOURCES, entry.type)) return false
  const held = entry[entry.type]
  if (!isObject(held) || !SOURCES[entry.type]!.some(name => held[name] !== undefined)) return false
  return Object.values(held).every(value => typeof value === 'string')
}

function mediaIn(messages: ChatRequest['messages']): Media {
  const found = mediaParts(messages)
  if (found.length === 0) return nothing
  const parts = found.map((part, at) => measured.get(part) ?? (at < MAX_TYPED_PARTS ? bySize(part) : byLength(part)))
  const total = (of: (part: PartMedia) => number | undefined) => parts.reduce((sum, part) => sum + (of(part) ?? 0), 0)
  return {
    images: parts.flatMap(({ image }) => (image ? [image.size] : [])),
    audioSeconds: total(part => part.seconds),
    fileTokens: total(part => part.tokens),
    pages: total(part => part.pages),
    unmeasuredTokens: total(part => part.unmeasured?.tokens),
    unmeasuredAudio: total(part => part.unmeasured?.seconds),
  }
}

const NONE: PartMedia = { seconds: 0, tokens: 0, pages: 0 }

function bySize(part: ContentPart): PartMedia {
  const at = addressOf(part)
  if (at) return at
  const data = dataOf(part)
  if (!data) return part.type === 'file' ? { ...NONE, tokens: FILE_TOKENS } : NONE
  const { file, type, name, isImage } = data
  if (part.type === 'input_audio')
    return { ...NONE, seconds: file.size / bytesPerSecond(part.input_audio.format, type) }
  return { ...NONE, ...tokensBySize(file, type, name), ...(isImage && { image: { size: undefined } }) }
}

/** The dearest that so many characters may be, where a request has very many parts. */
function byLength(part: ContentPart): PartMedia {
  if (part.type === 'image_url') return { ...NONE, image: { size: undefined } }
  if (part.type === 'input_audio')
    return { ...NONE, seconds: part.input_audio.data.length / COMPRESSED_BYTES_PER_SECOND }
  const length = part.type === 'file' ? part.file.file_data?.length : 0
  return { ...NONE, tokens: length === undefined ? FILE_TOKENS : Math.ceil(length / CHARACTERS_PER_TOKEN) }
}
const CHARACTERS_PER_TOKEN = 4

/** Undefined where its size is all that counts. */
async function looked(part: ContentPart, budget: MediaBudget): Promise<PartMedia | undefined> {
  const data = budget.work > 0 && !addressOf(part) ? dataOf(part) : undefined
  if (!data) return undefined
  const { file, type, name, isImage } = data
  if (part.type === 'input_audio') {
    const seconds = await mediaSeconds(file, budget)
    return seconds === undefined ? undefined : { ...NONE, seconds }
  }
  const image = isImage ? { size: await imageDimensions(file, budget) } : undefined
  const tokens = (await tokensByContent(file, type, name, budget)) ?? tokensBySize(file, type, name)
  return { ...NONE, ...tokens, ...(image && { image }) }
}

/** Headless samples have a rate of their own; anything else may be compressed. */
const bytesPerSecond = (format: string, type: string): number =>
  format === 'pcm' && type === SAMPLES ? PLAIN_BYTES_PER_SECOND : COMPRESSED_BYTES_PER_SECOND
const SAMPLES = 'audio/pcm'
const IMAGE = 'image/png'

interface PartData {
  readonly file: MediaFile
  readonly type: string
  readonly name: string | undefined
  readonly isImage: boolean
}

/** The data of a part; undefined where it has none. */
function dataOf(part: ContentPart): PartData | undefined {
  if (part.type === 'image_url') {
    const data = fileIn(part.image_url.url)
    // Most wires refuse what is no image; some send it on.
    const declared = data.mime.startsWith('image/') ? data.mime : IMAGE
    return { file: data.file, type: typeOf(data.file, declared), name: undefined, isImage: true }
  }
  if (part.type === 'input_audio') {
    const { file } = fileIn(part.input_audio.data)
    return { file, type: typeOf(file, SAMPLES), name: undefined, isImage: false }
  }
  if (part.type !== 'file' || part.file.file_data === undefined) return undefined
  const { file_data: text, filename: name } = part.file
  const { file, mime } = fileIn(text)
  const type = typeOf(file, mime, name)
  return { file, type, name, isImage: type.startsWith('image/') }
}

const typeOf = (file: MediaFile, declared: string, name?: string): string =>
  mediaTypeOf(file.read(0, MEDIA_HEAD_BYTES), declared, name)

/** The bytes of a data URL, or of base64. */
function fileIn(text: string): { file: MediaFile; mime: string } {
  const head = dataHeadOf(text)
  if (!head) return { file: new Base64File(withoutSpace(text)), mime: '' }
  if (head.isBase64) return { file: new Base64File(withoutSpace(text.slice(head.at))), mime: head.mime }
  const plain = text.length <= MAX_PLAIN_CHARACTERS ? parseDataUrl(text)?.base64 : undefined
  // A character may have three bytes.
  const file = plain === undefined ? { size: 3 * text.length, read: () => Buffer.alloc(0) } : new Base64File(plain)
  return { file, mime: head.mime }
}

/** Estimates the media at an address; undefined for a part that holds its data. */
function addressOf(part: ContentPart): PartMedia | undefined {
  if (part.type === 'image_url')
    return isAddress(part.image_url.url) ? { ...NONE, image: { size: undefined } } : undefined
  if (part.type === 'input_audio') {
    if (!isAddress(part.input_audio.data)) return undefined
    return { ...NONE, seconds: ADDRESS_SECONDS, unmeasured: { seconds: UNMEASURED_SECONDS } }
  }
  if (part.type !== 'file') return undefined
  const { file_data: text, file_id: id } = part.file
  if (text === undefined) return id !== undefined && isAddress(id) ? fetched(VIDEO_TOKENS) : undefined
  return isAddress(text) ? fetched(FILE_TOKENS) : undefined
}

const fetched = (tokens: number): PartMedia => ({ ...NONE, tokens, unmeasured: { tokens: UNMEASURED_TOKENS } })
