/** Usage of a request. Its axes are those of prices, so that cost is their product. */

/**
 * Tokens unless said otherwise. `prompt` includes cached, written, image (`image_input`), audio and video tokens;
 * `completion` includes reasoning, image and audio tokens; `input_audio_cache_read` is part of both `input_audio` and
 * `input_cache_read`. `image` (of the prompt), `output_images` (images of the answer), `request`, `web_search`,
 * `ocr_page` and `ocr_page_annotated` are counts, `second` and `input_audio_hour` are durations in their unit.
 * `input_video` has no price of its own: it costs as `prompt`.
 */
export const axes = [
  'prompt',
  'completion',
  'input_cache_read',
  'input_cache_write',
  'input_cache_write_1h',
  'internal_reasoning',
  'image',
  'image_input',
  'image_output',
  'output_images',
  'input_audio',
  'input_audio_cache_read',
  'input_video',
  'output_audio',
  'request',
  'web_search',
  'ocr_page',
  'ocr_page_annotated',
  'input_audio_hour',
  'second',
] as const

/** A unit that answers are counted in. */
export type Axis = (typeof axes)[number]

/** Counts by unit; absent where the provider reports none. */
export type Usage = Partial<Record<Axis, number>>

/** No answer has more of anything. Above it stands what a broken provider says, which no ledger could hold. */
const MAX_COUNT = 1e9

/** Sets the axes of `into` that a later `report` counts; the others keep their values. */
export function applyReport(into: Usage, report: Partial<Usage>): void {
  for (const key in report) {
    const axis = key as Axis
    const value = report[axis]
    if (typeof value === 'number' && value >= 0 && value <= MAX_COUNT) into[axis] = value
  }
}

/** Raises the axes of `into` to those of `usage`. */
export function mergeUsage(into: Usage, usage: Partial<Usage>): void {
  for (const key in usage) {
    const axis = key as Axis
    const value = usage[axis]
    if (typeof value === 'number' && value >= 0 && value <= MAX_COUNT && value > (into[axis] ?? -1)) {
      into[axis] = value
    }
  }
}

/** Tokens of one answer, where nothing is known of its model. */
export const MAX_OUTPUT_TOKENS = 1_000_000
/** The tokenizer of models whose prompt is counted and charged in code points (docs/money.md#media-prices). */
export const CHARACTERS = 'characters'
/** Bytes that a token has on average. */
export const TOKEN_BYTES = 4
/** The bytes of a text in UTF-8: where a character has three, most tokens have one character or two. */
export const textSize = (text: string): number => Buffer.byteLength(text)
/** The bytes of all names and texts in a value of plain objects, and `each` for each of its values. Allocates nothing. */
export function valueSize(value: unknown, each = 0): number {
  if (typeof value === 'string') return textSize(value) + each
  if (typeof value !== 'object' || value === null) return each
  let sum = each
  if (Array.isArray(value)) for (let at = 0; at < value.length; at++) sum += valueSize(value[at], each)
  else for (const name in value) sum += textSize(name) + valueSize((value as Record<string, unknown>)[name], each)
  return sum
}
/** Tokens of so many bytes of text whose tokenizer is unknown; at least one for any text. */
export const estimateTokens = (bytes: number): number => Math.ceil(bytes / TOKEN_BYTES)
