/**
 * Handles the money of one attempt: reserves it before the upstream is called, and charges once, before the last byte
 * leaves. A failed attempt is free, with two exceptions. An answer that fails because of its request, or for lack of
 * memory, is charged. So are parts of a request that were answered before the failure. A stream that is cut is charged
 * for the delivered content. If the client left, the work done so far is charged.
 */

import type { Exchange } from '../../core/exchange.ts'
import type { FilterFactory } from '../../core/filter.ts'
import { type Money, parseDecimal } from '../../core/money.ts'
import type { Exhausted, Hold, HoldRequest, Services } from '../../core/ports.ts'
import { only, type Reply } from '../../core/reply.ts'
import { type Infer, s } from '../../core/schema.ts'
import type { Target } from '../../core/translator.ts'
import { asError, errors } from '../../lib/error.ts'
import { costWith, type Estimate, estimate, tokensWithin } from '../../metering/estimate.ts'
import { comesInPieces, isUnmeasured } from '../../metering/requests.ts'
import { isByok } from '../../routing/policy.ts'
import { placeHold } from './at-limit.ts'
import { Charged, endOf } from './charged.ts'
import { Conclusion, recorded } from './conclusion.ts'
import { allowanceOf, discounted, exhaustedError, type OutputLimit, payerOf, uncharged } from './funding.ts'
import { JobAdmission } from './jobs.ts'
import { Meter, stoppedBy } from './meter.ts'
import { identityOf, rowOf } from './row.ts'
import { admitSession } from './session-charges.ts'

const options = s.object({
  /** Answer tokens of each choice that a stream holds at a time. */
  stream_hold: s.default(s.integer({ minimum: 1 }), 4096),
  /**
   * Where money is short: a limit below this, and below the images that may stand beside it, is refused, rather than sent in
   * place of the caller's.
   */
  least_output: s.default(s.integer({ minimum: 1 }), 256),
  /** Holds content that providers fetch by themselves at its most, where there is money; else at what is usual. */
  hold_unmeasured: s.default(s.boolean(), true),
  /** USD per million tokens, of organizations that pay for the storage of their data. */
  storage: s.default(s.decimal(), '0.01'),
})
type Options = Infer<typeof options>

/** USD per million tokens with so many places is pico-USD per token. */
const TOKEN_PLACES = 6

/** A hold older than the request's total timeout plus this is orphaned and will be released. */
const GRACE_MS = 60_000

/** Repeated by `route`: each attempt has a hold of its own. `finish` writes the request's row where no charge did. */
export const billing: FilterFactory<Options> = {
  name: 'billing',
  options,
  needs: ['principal', 'target'],
  gives: ['charge'],
  create(given, services) {
    const { ledger, now } = services
    const storageRate = parseDecimal(given.storage, TOKEN_PLACES)
    const jobs = new JobAdmission(services)
    /** Holds of failed attempts, by exchange. The next one has another id: it may begin before these have ended. */
    const failed = new WeakMap<Exchange, number>()
    return {
      async handle(ex, next) {
        const target = ex.endpoint.counts ? uncharged(ex.target!) : discounted(ex.target!, ex.caller.principal!)
        ex.target = target
        if (ex.operation.isSession) {
          const reply = await admitSession(ex, { storageRate, leastOutput: given.least_output }, services, next)
          // Its parts have rows of their own.
          recorded.add(ex)
          return reply
        }
        const expected = estimate(ex) ?? undefined
        if (!expected) checkUnpriced(target)
        const isEndable = comesInPieces(ex) && target.mapping.cancellable !== false && !isUnmeasured(ex)
        const first = expected ? firstHold(expected, isEndable, given) : NOTHING
        const wanted = holdFor(ex, `${ex.logId}:${failed.get(ex) ?? 0}`, first, now())
        if (ex.operation.job) return jobs.handle(ex, wanted, next)
        const hold = await reserve(ex, wanted, expected, services)
        if (!isEndable && expected && hold && hold.amount < first.amount) setLimit(ex, expected, hold)
        const bound = expected && !isUnlimited(wanted) ? expected : undefined
        const isMetered = isEndable || (ex.streaming && target.mapping.supports.has('streaming'))
        const held = bound && hold ? withSpare(bound, hold.amount - first.amount) : undefined
        const meter = hold && isMetered ? new Meter(ex, hold, held, wanted, first.step, services) : undefined
        const attempt = { hold, meter, payer: wanted.principal, isBounded: bound !== undefined, storageRate }
        const conclusion = new Conclusion(ex, attempt, services)
        let reply: Reply
        try {
          reply = await next()
        } catch (thrown) {
          if (!meter?.stopped) {
            failed.set(ex, (failed.get(ex) ?? 0) + 1)
            await conclusion.failed(asError(thrown))
            throw thrown
          }
          reply = { status: 200, headers: [], events: only(...endOf(ex, [])) }
        }
        reply.events = new Charged(ex, reply.events, conclusion, meter)
        return reply
      },
      finish(ex) {
        if (!ex.caller.principal || !ex.request || recorded.has(ex) || jobs.has(ex)) return
        return ledger.record(rowOf(ex, ex.answer.outcome ?? 'error', 0n, now()))
      },
    }
  },
}

/** Throws for an offer whose price is unknown, unless its manifest or the caller's own key allows it. */
function checkUnpriced({ mapping, provider, credential, price }: Target): void {
  if (mapping.unpriced === 'allow' || isByok(credential)) return
  // Another provider may have the price.
  throw errors.unpriced(mapping.model.id, provider.id, price && 'what is asked of ').with({ failover: true })
}

/** Amounts of the first hold of an attempt. */
interface FirstHold extends Pick<HoldRequest, 'amount' | 'least' | 'spare'> {
  /** Tokens of each choice by which the hold of a stream grows. */
  readonly step: number
}
const NOTHING: FirstHold = { amount: 0n, least: 0n, step: 0 }

/**
 * Returns the amounts of the first hold: what is wanted, and what will do. A stream can be ended at any token, a whole
 * answer without a limit cannot. An answer that needs a minimum of tokens holds at least these.
 */
function firstHold(expected: Estimate, isEndable: boolean, given: Options): FirstHold {
  const { stream_hold, least_output, hold_unmeasured } = given
  const { choices, most, least: useful, ofImages, limitable, unmeasured } = expected
  const first = useful > 0 ? Math.max(useful, least_output) : stream_hold
  const wanted = isEndable ? Math.min(most, first) : most
  const fewest = limitable ? Math.max(least_output + ofImages, useful) : most
  const least = Math.min(wanted, isEndable ? Math.max(useful, 1) : fewest)
  return {
    amount: costWith(expected, wanted * choices),
    least: costWith(expected, least * choices),
    spare: hold_unmeasured ? unmeasured : undefined,
    step: isEndable ? Math.min(first, stream_hold) : stream_hold,
  }
}

/** Adds the amount for content of unknown size. Tokens of the answer cannot use it. */
const withSpare = (expected: Estimate, spare: Money): Estimate =>
  spare > 0n ? { ...expected, base: expected.base + spare } : expected

/** Sends the limit that could be held, where that is less than the caller's. */
function setLimit(ex: Exchange, expected: Estimate, hold: Hold): void {
  const tokens = Math.floor(tokensWithin(expected, hold.amount) / expected.choices)
  ex.outbound.limitTo({ tokens, by: stoppedBy(hold.refused) })
}

/**
 * Places a hold. Undefined when the ledger cannot be written and the caller pays the provider itself without a limit
 * to check: such requests are served without a hold.
 */
async function reserve(
  ex: Exchange,
  request: HoldRequest,
  expected: Estimate | undefined,
  services: Services,
): Promise<Hold | undefined> {
  const { ledger } = services
  const { unaffordable } = ex.operation
  try {
    const hold = await placeHold(ex, request, services)
    if ('exhausted' in hold) {
      const least = request.least ?? request.amount
      if (!expected || expected.limitable) {
        throw exhaustedError(hold, least, expected && affordable(hold, expected), unaffordable)
      }
      // Another provider may take a limit that there is money for.
      throw exhaustedError(hold, least, null, unaffordable).with({ failover: true })
    }
    return hold
  } catch (thrown) {
    if (isUnlimited(request) && ledger.canSpool && asError(thrown).code === 'billing_unavailable') return undefined
    throw thrown
  }
}

/** Tokens of each choice that its caller may ask for in the place of more. Undefined where fewer would not do. */
function affordable({ room }: Exhausted, expected: Estimate): OutputLimit | undefined {
  if (expected.least > 0 || expected.most === 0) return undefined
  const tokens = Math.floor(tokensWithin(expected, room) / expected.choices)
  return tokens < expected.most ? { param: 'max_tokens', tokens } : undefined
}

/** Throws for what a coding plan excludes. `now`: Unix milliseconds. */
const holdFor = (ex: Exchange, id: string, { amount, least, spare }: FirstHold, now: number): HoldRequest => ({
  id,
  request: identityOf(ex),
  principal: payerOf(ex),
  amount,
  least,
  spare,
  expiresAt: now + ex.target!.provider.timeouts.total + GRACE_MS,
  byok: isByok(ex.target!.credential),
  allowance: allowanceOf(ex),
})

/** The caller pays the provider itself, and no limit is counted. */
const isUnlimited = ({ byok, principal }: HoldRequest): boolean => byok === true && principal.budgets.length === 0
