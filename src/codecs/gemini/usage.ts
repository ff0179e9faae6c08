/** Usage in this wire's form: thoughts are counted separately from the answer (docs/contributing/wire-sources.md#gemini). */
import type { Exchange } from '../../core/exchange.ts'
import { toNumber } from '../../core/money.ts'
import { usageInfo } from '../accounting.ts'

/** With its cost in USD; null while the price is unknown. Call it after the last event. */
export function usageOf(ex: Exchange): object {
  const { usage } = ex
  const { cost } = ex.meter
  const { prompt = 0, completion = 0, internal_reasoning: thoughts = 0, input_cache_read: cached = 0 } = usage
  const audioInput = usage.input_audio ?? 0
  const imageTokens = usage.image_output ?? 0
  return {
    promptTokenCount: prompt,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    candidatesTokenCount: Math.max(0, completion - thoughts),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    totalTokenCount: prompt + completion,
    promptTokensDetails: [
      counted('TEXT', Math.max(0, prompt - audioInput)),
      ...(audioInput > 0 ? [counted('AUDIO', audioInput)] : []),
    ],
    ...(imageTokens > 0 && { candidatesTokensDetails: [counted('IMAGE', imageTokens)] }),
    cost: cost && toNumber(cost.total),
    info: usageInfo(ex),
  }
}

const counted = (modality: string, tokenCount: number) => ({ modality, tokenCount })
