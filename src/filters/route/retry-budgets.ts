/** Bounds retries at failing targets, so that an outage is not multiplied (docs/contract.md#circuits-and-retries). */
import { LRUCache } from 'lru-cache'
import { seriesOf } from '../../core/offer.ts'
import type { Target } from '../../core/translator.ts'
import { upTo } from '../../lib/up-to.ts'
import { TokenBucket } from '../../limits/rate.ts'
import type { Settings } from '../../routing/settings.ts'

/** Maximum retry budgets in memory. A forgotten one starts again with its reserve. */
const MAX_BUDGETS = 10_000

/** The time in which an empty reserve fills by itself: little traffic must not keep failover off. */
const REFILL_S = 60

/**
 * Budgets of retries: `reserve + budget × n` retries for `n` requests, and a reserve more each minute. Each model has its
 * own for each organization: no outage, and no tenant, takes away the retries of another one.
 */
export class RetryBudgets {
  readonly #options: Settings['retry']
  /** Retry budgets by organization and model label. */
  readonly #budgets = new LRUCache<string, TokenBucket>(upTo(MAX_BUDGETS))

  constructor(options: Settings['retry']) {
    this.#options = options
  }

  /** Returns the budget that pays for retries of this request, which adds its own share. */
  begin({ mapping: { model } }: Target, org: string): TokenBucket {
    const { reserve, budget: share } = this.#options
    const key = `${org} ${seriesOf(model)}`
    let budget = this.#budgets.get(key)
    if (!budget) {
      budget = new TokenBucket(reserve, reserve / REFILL_S)
      this.#budgets.set(key, budget)
    }
    budget.give(share)
    return budget
  }
}
