/** A prompt at its most: with what tools of its provider may read, and as far as it may be written to a cache. */

import type { Exchange } from '../core/exchange.ts'
import { ratesFor } from '../core/money.ts'
import type { Usage } from '../core/usage.ts'
import { FILE_TOKENS } from '../media/tokens.ts'
import { repeatsOf, requestsOf } from './requests.ts'

/** Tokens of the shortest prefix that is cached, where a mapping names none (docs/contributing/wire-sources.md#anthropic). */
export const LEAST_CACHEABLE = 1024

/**
 * Counts the whole prompt of `usage` as written to its provider's cache where that costs more than to read it: if it is
 * marked as it was sent, or if its provider caches by itself and it is long enough. What is held has it, and so has the
 * estimate of what no provider reports.
 */
export function addCacheWrite(ex: Exchange, usage: Usage): void {
  const { target, outbound } = ex
  const { prompt = 0 } = usage
  if (!target?.price || prompt === 0) return
  const { translator, mapping, price } = target
  const isLong = prompt / requestsOf(ex) >= (mapping.minCacheableTokens ?? LEAST_CACHEABLE)
  const mark = translator.cacheMarks ? outbound.cacheMark : isLong && '5m'
  if (!mark) return
  const {
    prompt: plain = 0n,
    input_cache_write: write = 0n,
    input_cache_write_1h: longer = write,
  } = ratesFor(price, prompt / repeatsOf(ex))
  if ((mark === '1h' ? longer : write) <= plain) return
  usage[mark === '1h' ? 'input_cache_write_1h' : 'input_cache_write'] = prompt
}

/** The most that the prompt of an exchange is estimated at, with the pages that tools of its provider may read. */
export function wholePrompt(ex: Exchange): Usage {
  const usage = ex.promptUsage
  const pages = ex.native?.pages ?? 0
  if (pages === 0) return usage
  usage.prompt = (usage.prompt ?? 0) + pages * FILE_TOKENS
  addCacheWrite(ex, usage)
  return usage
}
