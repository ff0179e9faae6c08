/** What the files, audio and images of a chat request may come to, by their sizes, their heads, and the trees of PDFs. */
import type { ChatRequest, ContentPart } from '../../core/chat-request.ts'
import { FILE_TOKENS, type Media } from '../../core/media.ts'
import { DIMENSIONS_HEADS, type Dimensions, imageDimensions } from '../../lib/image-dimensions.ts'
import { imageType } from '../../lib/image-type.ts'
import { mediaTypeOf } from '../../lib/media-type.ts'
import { isAddress } from '../../lib/url.ts'
import { exactHead } from '../base64.ts'
import { audioSeconds } from './audio-seconds.ts'
import { type ContentTokens, known, likely } from './content-tokens.ts'
import { type File, fileTokens, isImage, VIDEO_TOKENS } from './file-tokens.ts'
import { MEDIA_BUDGET, type MediaData, mediaData } from './media-data.ts'

const nothing: Media = { images: [], audioSeconds: 0, fileTokens: 0 }

/** Messages without media that are walked again, rather than remembered. */
const FEW = 16

const measured = new WeakMap<ChatRequest['messages'], Media>()

/** Reads the heads of images and audio, and the trees of PDFs within bounds, once a request. */
export function mediaOf(messages: ChatRequest['messages']): Media {
  let media = measured.get(messages)
  if (!media) {
    media = mediaIn(messages)
    if (media !== nothing || messages.length > FEW) measured.set(messages, media)
  }
  return media
}

function mediaIn(messages: ChatRequest['messages']): Media {
  let count: MediaCount | undefined
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue
    for (const part of content) {
      if (part.type === 'text') continue
      count ??= new MediaCount()
      count.add(part)
    }
  }
  return count?.media ?? nothing
}

/** Adds up the parts of one request. A part that readers may take for several things counts as each of them. */
class MediaCount {
  readonly #budget = { ...MEDIA_BUDGET }
  readonly #images: (Dimensions | undefined)[] = []
  #audioSeconds = 0
  #moreAudio = 0
  #unmeasuredAudio = 0
  #fileTokens = 0
  #pages = 0
  #unmeasuredTokens = 0

  add(part: ContentPart): void {
    if (part.type === 'image_url') this.#addImage(part.image_url.url)
    else if (part.type === 'input_audio') {
      const { seconds, more, unmeasured } = audioSeconds(part.input_audio, this.#budget)
      this.#audioSeconds += seconds
      this.#moreAudio += more
      this.#unmeasuredAudio += unmeasured
    } else if (part.type === 'file') this.#addFile(part.file)
  }

  get media(): Media {
    const [images, audioSeconds, fileTokens] = [this.#images, this.#audioSeconds, this.#fileTokens]
    if (images.length + audioSeconds + fileTokens === 0) return nothing
    return {
      images,
      audioSeconds,
      moreAudio: this.#moreAudio,
      fileTokens,
      pages: this.#pages,
      unmeasuredTokens: this.#unmeasuredTokens,
      unmeasuredAudio: this.#unmeasuredAudio,
    }
  }

  #addImage(url: string): void {
    const data = isAddress(url) ? undefined : mediaData(url, this.#budget)
    this.#images.push(data && this.#sizeOf(data))
    if (!data?.head) return
    // Most wires refuse what is no image; some send it on.
    const type = mediaTypeOf(data.head, isImage(data.mime) ? data.mime : IMAGE)
    this.#addTokens(fileTokens(data, type, undefined, this.#budget))
  }

  #addFile({ file_data: text, file_id: id, filename }: File): void {
    if (text === undefined) {
      this.#addTokens(id !== undefined && isAddress(id) ? likely(VIDEO_TOKENS) : known(FILE_TOKENS))
    } else if (isAddress(text)) this.#addTokens(likely(FILE_TOKENS))
    else {
      const data = mediaData(text, this.#budget)
      const type = data.head ? mediaTypeOf(data.head, data.mime, filename) : ''
      if (isImage(type)) this.#images.push(this.#sizeOf(data))
      this.#addTokens(fileTokens(data, type, filename, this.#budget))
    }
  }

  #addTokens({ tokens, unmeasured, pages }: ContentTokens): void {
    this.#fileTokens += tokens
    this.#unmeasuredTokens += unmeasured
    this.#pages += pages
  }

  /** Undefined where the head of the image does not say it, and beyond the budget. */
  #sizeOf({ base64, head: begin }: MediaData): Dimensions | undefined {
    const budget = this.#budget
    if (!begin || imageType(begin) === undefined || budget.heads-- <= 0) return undefined
    const [few, many] = DIMENSIONS_HEADS
    const size = dimensionsIn(exactHead(base64, few))
    if (size || base64.length <= few || budget.imageBytes <= 0) return size
    budget.imageBytes -= Math.min(many, base64.length)
    return dimensionsIn(exactHead(base64, many))
  }
}

const IMAGE = 'image/png'
const dimensionsIn = (head: Buffer | undefined) => head && imageDimensions(head)
