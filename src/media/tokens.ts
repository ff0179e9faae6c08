/** Estimates the prompt tokens of a file before its provider counts it. */
import { mediaSeconds } from './length.ts'
import { pdfPages } from './pages.ts'
import type { MediaBudget, MediaFile } from './source.ts'
import { holdsPdf, isText, MEDIA_HEAD_BYTES } from './type.ts'

/** A page: its text, and `IMAGE_PROMPT_TOKENS` for the image of it. A usual one has 30 kB. */
const PAGE_TOKENS = 2000
/** A file that only its address is known of, or whose pages are not found: a dozen pages. */
export const FILE_TOKENS = 12 * PAGE_TOKENS

const FILE_BYTES_PER_TOKEN = 16
const TEXT_BYTES_PER_TOKEN = 4
/** A video with sound: an image a second. */
const VIDEO_TOKENS_PER_SECOND = 300
/** A video at an address: a quarter of an hour. */
export const VIDEO_TOKENS = 15 * 60 * VIDEO_TOKENS_PER_SECOND

/** Tokens of a file, and the pages among them. */
interface FileTokens {
  readonly tokens: number
  readonly pages: number
}

/** Signs by which a provider may override the declared type. */
const PDF_NAME = /\.pdf$/i
const FILM = /^.{4}ftyp|^.E\xdf\xa3/s

/** Kinds of content that a provider may find in a file sent as `type`. */
interface Contents {
  readonly isPdf: boolean
  readonly isFilm: boolean
  /** Tokens by the file's size; none for an image. */
  readonly tokens: number
}

function contentsOf(file: MediaFile, type: string, name: string): Contents {
  const head = file.read(0, MEDIA_HEAD_BYTES)
  const isPlain = isText(type)
  const isPdf = holdsPdf(head) && (!isPlain || PDF_NAME.test(name))
  const isImage = type.startsWith('image/')
  const isFilm = !isPlain && !isImage && FILM.test(head.toString('latin1', 0, 12))
  const tokens = Math.ceil(file.size / (isPlain ? TEXT_BYTES_PER_TOKEN : FILE_BYTES_PER_TOKEN))
  return { isPdf, isFilm, tokens: isImage && !isPdf ? 0 : tokens }
}

/** The estimate by size alone. */
export function tokensBySize(file: MediaFile, type: string, name = ''): FileTokens {
  const { isPdf, tokens } = contentsOf(file, type, name)
  return { tokens: isPdf ? Math.max(tokens, FILE_TOKENS) : tokens, pages: 0 }
}

/** The estimate by pages or seconds; undefined where the file does not say them, and its size is all that counts. */
export async function tokensByContent(
  file: MediaFile,
  type: string,
  name: string | undefined,
  budget: MediaBudget,
): Promise<FileTokens | undefined> {
  const { isPdf, isFilm, tokens } = contentsOf(file, type, name ?? '')
  const pages = isPdf ? pdfPages(file, budget) : undefined
  if (pages !== undefined) return { tokens: Math.max(tokens, pages * PAGE_TOKENS), pages }
  const seconds = isFilm ? await mediaSeconds(file, budget) : undefined
  if (seconds === undefined) return undefined
  return { tokens: Math.max(tokens, Math.ceil(seconds * VIDEO_TOKENS_PER_SECOND)), pages: 0 }
}
