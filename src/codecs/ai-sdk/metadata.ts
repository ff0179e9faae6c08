/** What an answer says of its cost and its route, in the gateway's namespace. */
import type { Exchange } from '../../core/exchange.ts'
import { formatMoney } from '../../core/money.ts'
import type { Json } from '../../json/json.ts'
import { answererOf, answerIdOf, answerModelOf, replacedLimitOf, usageInfo } from '../accounting.ts'
import { generationIdOf } from './error.ts'

/** Undefined members are left out of the JSON; `cost` is USD as a decimal string. */
export function metadataOf(ex: Exchange): Json {
  const finalProvider = answererOf(ex)
  return {
    cost: ex.cost ? formatMoney(ex.cost.total) : undefined,
    generationId: generationIdOf(answerIdOf(ex)),
    usedModel: answerModelOf(ex),
    usedProvider: finalProvider,
    requestId: ex.id,
    cached: ex.cached ? true : undefined,
    stoppedBy: ex.stoppedBy,
    maxTokens: replacedLimitOf(ex),
    usageInfo: usageInfo(ex),
    routing: {
      originalModelId: ex.requestedModel,
      resolvedProvider: finalProvider,
      canonicalSlug: answerModelOf(ex),
      finalProvider,
      totalProviderAttemptCount: ex.attempts.length,
    },
  }
}
