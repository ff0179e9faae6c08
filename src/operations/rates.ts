/** Whether a price list suffices to bill an operation (docs/money.md#media-prices). */
import type { Price } from '../core/money.ts'

/**
 * Either all tokens have a price, or none has and the other counted unit does. `writes`: answers have output tokens
 * too.
 */
export function hasTokenRates({ rates, perSecond, perImage }: Price, writes: boolean): boolean {
  const { prompt, completion, request, ocr_page, input_audio_hour } = rates
  if (prompt !== undefined && (completion !== undefined || !writes)) return true
  const byToken = prompt !== undefined || completion !== undefined
  return [byToken ? undefined : request, ocr_page, input_audio_hour, perSecond, perImage].some(
    rate => rate !== undefined,
  )
}
