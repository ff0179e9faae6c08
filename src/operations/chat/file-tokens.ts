/** What a file of a chat request may come to, by each of the types that readers may find in it. */
import type { ContentPart } from '../../core/chat-request.ts'
import { FILE_TOKENS, PAGE_TOKENS } from '../../core/media.ts'
import { holdsPdf, isText } from '../../lib/media-type.ts'
import { isVideo, videoSeconds } from '../../lib/video-seconds.ts'
import { exactBytes } from '../base64.ts'
import { pdfPages } from '../pdf/pages.ts'
import { type ContentTokens, dearest, known, likely } from './content-tokens.ts'
import type { MediaBudget, MediaData } from './media-data.ts'

const FILE_BYTES_PER_TOKEN = 16
const TEXT_BYTES_PER_TOKEN = 4
/** Of a video with sound: an image a second. */
const VIDEO_TOKENS_PER_SECOND = 300
/** Of a video at an address: a quarter of an hour. */
export const VIDEO_TOKENS = 15 * 60 * VIDEO_TOKENS_PER_SECOND
/** No model reads more of a video. */
const MOST_SECONDS = 24 * 3600

export type File = Extract<ContentPart, { type: 'file' }>['file']

/** Of a file that is sent as `type`; nothing for an image, unless it is something else as well. */
export function fileTokens(
  data: MediaData,
  type: string,
  name: string | undefined,
  budget: MediaBudget,
): ContentTokens {
  const { head, size } = data
  const bySize = Math.ceil(size / FILE_BYTES_PER_TOKEN)
  if (!head) return likely(Math.max(bySize, FILE_TOKENS))
  const isOther = !isText(type)
  const isPdf = holdsPdf(head) && (isOther || PDF_NAME.test(name ?? ''))
  const isFilm = isOther && !isImage(type) && isVideo(head)
  let found: ContentTokens | undefined
  if (!isOther) found = known(Math.ceil(size / TEXT_BYTES_PER_TOKEN))
  else if (isImage(type)) found = NOTHING
  if (!isPdf && !isFilm) return found ?? likely(bySize)
  if (budget.heads-- <= 0) return likely(Math.max(bySize, FILE_TOKENS))
  const bytes = size <= budget.read ? exactBytes(data.base64) : undefined
  const readings = [
    ...(isPdf ? [pdfTokens(bytes, bySize, budget)] : []),
    ...(isFilm ? [videoTokens(bytes, bySize, budget)] : []),
  ]
  return readings.reduce(dearest, found ?? NOTHING)
}

/** Whether a part of this type counts as an image. */
export const isImage = (type: string): boolean => type.startsWith('image/')
/** By which readers may go before its declared type. */
const PDF_NAME = /\.pdf$/i
const NOTHING = known(0)

function pdfTokens(bytes: Buffer | undefined, bySize: number, budget: MediaBudget): ContentTokens {
  const pages = bytes && pdfPages(bytes, budget)
  if (pages === undefined) return likely(Math.max(bySize, FILE_TOKENS))
  return known(Math.max(bySize, pages * PAGE_TOKENS), pages)
}

function videoTokens(bytes: Buffer | undefined, bySize: number, budget: MediaBudget): ContentTokens {
  if (!bytes) return likely(bySize)
  budget.read -= bytes.length
  const tokens = Math.ceil(Math.min(videoSeconds(bytes, budget), MOST_SECONDS) * VIDEO_TOKENS_PER_SECOND)
  return tokens > 0 ? known(Math.max(bySize, tokens)) : likely(bySize)
}
