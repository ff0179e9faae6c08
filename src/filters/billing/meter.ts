/**
 * Extends the holds of running streams before they are used up, or ends the answer in order (docs/money.md#holds).
 * Records their cost from time to time, so that a crash loses the charge of their last moments only.
 */

import type { Exchange } from '../../core/exchange.ts'
import type { Cost, Money } from '../../core/money.ts'
import type { StoppedBy } from '../../core/outbound.ts'
import type { Exhausted, Hold, HoldRequest, Services } from '../../core/ports.ts'
import { asError, type GatewayError } from '../../lib/error.ts'
import { costWith, type Estimate, tokensWithin } from '../../metering/estimate.ts'

const EVERY_MS = 2_000
/** A hold grows when so much of its last step is left. */
const MARGIN = 1 / 4

type Wanted = Pick<HoldRequest, 'principal' | 'allowance' | 'expiresAt'>

const look = (meter: Meter): void => void meter.look()

/** One running stream, until its `end`. Nothing else may change its hold. */
export class Meter {
  hold: Hold
  /** True once the stream was ended because its hold is used up. */
  stopped = false
  readonly #ex: Exchange
  readonly #estimate: Estimate | undefined
  readonly #wanted: Wanted
  readonly #step: number
  readonly #services: Pick<Services, 'ledger' | 'log' | 'now'>
  /** Tokens of the answer, all choices together, that the hold pays for. */
  #covered = 0
  #growing: Promise<void> | undefined
  #refused: Exhausted | undefined
  #failed: GatewayError | undefined
  /** Completion tokens at the last note. */
  #noted = 0
  readonly #timer = setInterval(look, EVERY_MS, this).unref()

  /** `step`: tokens of each choice that a hold grows by. Without an `estimate` nothing bounds the answer. */
  constructor(
    ex: Exchange,
    hold: Hold,
    estimate: Estimate | undefined,
    wanted: Wanted,
    step: number,
    services: Pick<Services, 'ledger' | 'log' | 'now'>,
  ) {
    this.#ex = ex
    this.#estimate = estimate
    this.#wanted = wanted
    this.#step = step * (estimate?.choices ?? 1)
    this.#services = services
    this.hold = hold
    this.#refused = hold.refused
    this.#cover()
  }

  /**
   * Whether the answer may go on with `more` tokens; a promise where the ledger must be waited for. Where that has refused to
   * extend the hold, it is called again when nothing is left of that, not before: there may be money again. Rejects when
   * nothing is left of the hold, and the ledger cannot say whether there is more.
   */
  mayGoOn(more: number): boolean | Promise<boolean> {
    if (this.#covered === Number.POSITIVE_INFINITY) return true
    const used = this.#ex.meter.tokens + more
    if (used + this.#step * MARGIN < this.#covered) return true
    const isUsedUp = used >= this.#covered
    if (isUsedUp || !this.#refused) this.#growing ??= this.#grow(this.#step + Math.max(0, used - this.#covered))
    return isUsedUp ? this.#growing!.then(() => this.#decide(more)) : true
  }

  /** Ends the provider's work. */
  stop(): void {
    const ex = this.#ex
    this.stopped = true
    ex.answer.isCut = true
    ex.answer.stoppedBy = stoppedBy(this.#refused)
    ex.signal.cut()
  }

  /** Looks no more at the stream. */
  end(): void {
    clearInterval(this.#timer)
  }

  /** To be called now and then: what is not seen of an answer costs, too. */
  async look(): Promise<void> {
    // Nothing has ended it, and its hold is an orphan.
    if (this.#services.now() > this.#wanted.expiresAt) this.end()
    if (this.stopped) return
    const { usage, cost } = this.#ex.meter.soFar
    if (this.#ex.meter.hasContent && usage.completion !== this.#noted) {
      this.#noted = usage.completion ?? 0
      const note = this.#services.ledger.checkpoint(this.hold, { usage, cost: cost?.total ?? null })
      note.catch(this.#warn('stream checkpoint failed'))
    }
    if (!this.#estimate || !cost) return
    await this.coverCost(cost)
    if (this.#refused && cost.total > this.hold.amount && !this.stopped) this.stop()
  }

  /** Extends the hold to what the answer has cost so far, where there is money for it. */
  async coverCost(cost: Cost | null = this.#ex.meter.soFar.cost): Promise<void> {
    if (!this.#estimate || !cost) return
    // An extension that runs already may not cover all of it.
    await this.#growing
    const missing = cost.total - this.hold.amount
    if (missing <= 0n) return
    this.#growing ??= this.#grow(this.#step, missing)
    await this.#growing
  }

  /** Tokens of the answer until the hold is used up. */
  get tokensLeft(): number {
    return Math.max(0, this.#covered - this.#ex.meter.tokens)
  }

  #decide(more: number): boolean | Promise<boolean> {
    const isUsedUp = more >= this.tokensLeft
    if (this.#failed && isUsedUp) throw this.#failed
    return isUsedUp && this.#refused ? false : this.mayGoOn(more)
  }

  async #grow(tokens: number, missing: Money = 0n): Promise<void> {
    const estimate = this.#estimate!
    const amount = costWith(estimate, tokens) - estimate.base + missing
    try {
      const { principal, allowance } = this.#wanted
      this.hold = await this.#services.ledger.extend(this.hold, { principal, allowance, amount })
      this.#refused = this.hold.refused
      this.#failed = undefined
      this.#cover()
    } catch (thrown) {
      this.#failed = asError(thrown)
      this.#warn('hold extension failed')(thrown)
    }
    this.#growing = undefined
  }

  #cover(): void {
    const estimate = this.#estimate
    const tokens = estimate ? tokensWithin(estimate, this.hold.amount) : Number.POSITIVE_INFINITY
    // The caller's own limit, or the model's, ends the answer before more could be used.
    const isAll =
      !estimate || tokens >= estimate.choices * (estimate.limitable ? estimate.most : Number.POSITIVE_INFINITY)
    this.#covered = isAll ? Number.POSITIVE_INFINITY : tokens
  }

  #warn = (message: string) => (err: unknown) => this.#services.log.warn({ err, hold: this.hold.id }, message)
}

/** Whether it is the organization's money that is used up, or a limit within it. */
export function stoppedBy(refused: Exhausted | undefined): StoppedBy {
  switch (refused?.exhausted) {
    case undefined:
    case 'credits':
    case 'plan':
    case 'premium':
      return 'credit'
    default:
      return 'limit'
  }
}
