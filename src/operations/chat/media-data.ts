/** The data of a part of a chat request, and what is looked at of those of one request. */
import { dataHeadOf, parseDataUrl } from '../../core/wire.ts'
import { AUDIO_BUDGET, type AudioBudget } from '../../lib/audio-seconds.ts'
import { MEDIA_HEAD } from '../../lib/media-type.ts'
import { exactHead } from '../base64.ts'
import { PDF_BUDGET, type PdfBudget } from '../pdf/budget.ts'

/** Beside what PDFs, videos and audio have: what is still looked at in a request. */
export interface MediaBudget extends PdfBudget, AudioBudget {
  /** Data whose type is determined. */
  types: number
  /** Files and audio that are looked into, and images whose size is. */
  heads: number
  /** Bytes of images whose first few do not say their size. */
  imageBytes: number
  /** Characters of data that is no base64. */
  plain: number
}
export const MEDIA_BUDGET: Readonly<MediaBudget> = {
  types: 4096,
  heads: 256,
  imageBytes: 8 * 1024 * 1024,
  plain: 4 * 1024 * 1024,
  ...PDF_BUDGET,
  ...AUDIO_BUDGET,
}

export interface MediaData {
  /** As its URL declares it; '' for base64 without a URL. */
  readonly mime: string
  /** As it came: white space may stand in it. */
  readonly base64: string
  /** In bytes: no less than it has. */
  readonly size: number
  /** The first `MEDIA_HEAD` bytes; undefined where decoders may read other ones, and beyond the budget. */
  readonly head: Buffer | undefined
}

/** The data of a URL, or base64, as wires send it. */
export function mediaData(text: string, budget: MediaBudget): MediaData {
  const found = dataHeadOf(text)
  if (found?.isBase64 === false) return plainData(text, text.length - found.at, found.mime, budget)
  return { mime: found?.mime ?? '', ...base64Data(found ? text.slice(found.at) : text, budget) }
}

function plainData(text: string, length: number, mime: string, budget: MediaBudget): MediaData {
  budget.plain -= length
  const parsed = budget.plain < 0 ? undefined : parseDataUrl(text)
  // A character may have three bytes.
  return parsed
    ? { mime, ...base64Data(parsed.base64, budget) }
    : { mime, base64: '', size: 3 * length, head: undefined }
}

function base64Data(base64: string, budget: MediaBudget) {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  const head = budget.types-- > 0 ? exactHead(base64, MEDIA_HEAD) : undefined
  return { base64, size: (base64.length * 3) / 4 - padding, head }
}

/** The first bytes of base64, as the most lenient decoders read them. */
export const headOf = (base64: string, bytes: number): Buffer =>
  Buffer.from(base64.slice(0, Math.ceil((bytes * 4) / 3)), 'base64')
