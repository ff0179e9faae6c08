/** The schema of an offer's prices: units and notation (docs/contract.md#catalogue). */
import { type Schema, s } from '../../core/schema.ts'
import { mapOf } from './terms.ts'

/** Price keys of docs/contract.md#catalogue in USD per million tokens. */
export const tokenPriceKeys = [
  'prompt',
  'completion',
  'image_input',
  'image_output',
  'input_audio',
  'input_audio_cache_read',
  'output_audio',
  'input_cache_read',
  'input_cache_write',
  'input_cache_write_1h',
  'internal_reasoning',
] as const
/** Price keys in USD per unit. */
export const unitPriceKeys = [
  'request',
  'web_search',
  'image',
  'ocr_page',
  'ocr_page_annotated',
  'input_audio_hour',
] as const

/** The number of decimals depends on the unit: see `pricing.ts`. */
const decimal = s.decimal({
  pattern: '^\\d{1,9}(\\.\\d{1,30})?$',
  description: 'a decimal number in quotes, such as "2.5"',
})
const prices = <K extends string>(keys: readonly K[]) =>
  Object.fromEntries(keys.map(key => [key, s.optional(decimal)])) as Record<
    K,
    Schema<string> & { readonly optional: true }
  >
/** Prices of an offer, in USD as quoted decimals. */
export const pricing = s.object({
  ...prices(tokenPriceKeys),
  ...prices(unitPriceKeys),
  per_second: s.optional(mapOf(decimal)),
  per_image: s.optional(mapOf(decimal)),
})
/** Prices that replace others for longer prompts. */
export const tier = s.object({ above_prompt_tokens: s.integer({ minimum: 1 }), ...prices(tokenPriceKeys) })
