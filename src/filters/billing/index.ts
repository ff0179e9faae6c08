/**
 * Handles the money of one attempt: reserves it before the upstream is called, and charges once, before the last byte
 * leaves. A failed attempt is free, with two exceptions. An answer that fails because of its request, or for lack of
 * memory, is charged. So are parts of a request that were answered before the failure. A stream that is cut is charged
 * for the delivered content. If the client left, the work done so far is charged.
 */

import type { Outcome } from '../../core/answer.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { FilterFactory } from '../../core/filter.ts'
import { type Money, parseDecimal, toNumber } from '../../core/money.ts'
import { labelsOf } from '../../core/offer.ts'
import type { Exhausted, Hold, HoldRequest, Principal, Services } from '../../core/ports.ts'
import { only, type Reply } from '../../core/reply.ts'
import { type Infer, s } from '../../core/schema.ts'
import { asError, CLIENT_CLOSED, errors } from '../../lib/error.ts'
import { costWith, type Estimate, estimate, tokensWithin } from '../../metering/estimate.ts'
import { comesInPieces, isUnmeasured } from '../../metering/requests.ts'
import { isByok } from '../../routing/policy.ts'
import { atLimit, tellPassed } from './at-limit.ts'
import { Charged, endOf } from './charged.ts'
import { allowanceOf, discounted, exhaustedError, type OutputLimit, payerOf, storageOf, uncharged } from './funding.ts'
import { JobAdmission } from './jobs.ts'
import { keep, release } from './keep.ts'
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
    /** Exchanges with a row. */
    const recorded = new WeakSet<Exchange>()
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
        const { mapping, provider } = target
        const expected = estimate(ex) ?? undefined
        if (!expected && mapping.unpriced !== 'allow' && !isByok(target.credential)) {
          const refused = errors.unpriced(mapping.model.id, provider.id, target.price && 'what is asked of ')
          // Another provider may have the price.
          throw refused.with({ failover: true })
        }
        const streamed = ex.streaming && mapping.supports.has('streaming')
        const isEndable = comesInPieces(ex) && mapping.cancellable !== false && !isUnmeasured(ex)
        const { amount, least, step } = expected ? sizes(expected, isEndable, given) : NOTHING
        const spare = given.hold_unmeasured ? expected?.unmeasured : undefined
        const wanted = holdFor(ex, `${ex.logId}:${failed.get(ex) ?? 0}`, amount, least, spare, now())
        if (ex.operation.job) return jobs.handle(ex, wanted, next)
        const hold = await reserve(ex, wanted, expected, services)
        if (!isEndable && expected && hold && hold.amount < amount) setLimit(ex, expected, hold)
        const isBounded = expected && !(wanted.byok && wanted.principal.budgets.length === 0)
        const held = isBounded && hold ? withSpare(expected, hold.amount - amount) : undefined
        const isMetered = streamed || isEndable
        const meter = hold && isMetered ? new Meter(ex, hold, held, wanted, step, services) : undefined
        const conclusion = {
          settle(outcome: Outcome, isWhole: boolean) {
            recorded.add(ex)
            meter?.end()
            const ended = meter?.hold ?? hold
            const most = isBounded || ex.isOwed || ex.answer.billedFailure ? ended?.amount : undefined
            const payer = wanted.principal
            return settle(ex, outcome, isWhole, { hold: ended, most, storageRate, payer }, services)
          },
          release() {
            meter?.end()
            return release(meter?.hold ?? hold, services)
          },
        }
        let reply: Reply
        try {
          reply = await next()
        } catch (thrown) {
          if (meter?.stopped) {
            reply = { status: 200, headers: [], events: only(...endOf(ex, [])) }
          } else {
            const error = asError(thrown)
            failed.set(ex, (failed.get(ex) ?? 0) + 1)
            if (error.billed && !ex.answer.billedFailure) ex.failedWith([], error)
            // A provider that fails after its client has left is paid as little as any that fails.
            if (ex.isOwed && error.status === CLIENT_CLOSED) {
              await conclusion.settle('aborted', ex.answer.billedFailure === 'parts')
            } else if (ex.answer.billedFailure) await conclusion.settle('error', ex.answer.billedFailure === 'whole')
            // Not awaited, so that it shares a transaction with the next attempt's hold: a crash always finds one of them.
            else void conclusion.release()
            throw thrown
          }
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

const NOTHING = { amount: 0n, least: 0n, step: 0 }

/**
 * Returns the sizes of the first hold, and the smallest sufficient ones. A stream can be ended at any token, a whole
 * answer without a limit cannot. An answer that needs a minimum of tokens holds at least these. `step`: tokens per
 * choice by which the hold of a stream grows.
 */
function sizes(expected: Estimate, isEndable: boolean, { stream_hold, least_output }: Options) {
  const { choices, most, least: useful, ofImages, limitable } = expected
  const first = useful > 0 ? Math.max(useful, least_output) : stream_hold
  const wanted = isEndable ? Math.min(most, first) : most
  const fewest = limitable ? Math.max(least_output + ofImages, useful) : most
  const least = Math.min(wanted, isEndable ? Math.max(useful, 1) : fewest)
  const [amount, enough] = [costWith(expected, wanted * choices), costWith(expected, least * choices)]
  return { amount, least: enough, step: isEndable ? Math.min(first, stream_hold) : stream_hold }
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
    const hold = await ledger.hold(request)
    if ('exhausted' in hold) {
      const instead = atLimit(ex, request, hold, services)
      if (instead) return await reserve(ex, instead, expected, services)
      const least = request.least ?? request.amount
      if (!expected || expected.limitable) {
        throw exhaustedError(hold, least, expected && affordable(hold, expected), unaffordable)
      }
      // Another provider may take a limit that there is money for.
      throw exhaustedError(hold, least, null, unaffordable).with({ failover: true })
    }
    if (hold.passed) tellPassed(ex, request.principal, hold.passed, services)
    return hold
  } catch (thrown) {
    const unbounded = request.byok && request.principal.budgets.length === 0
    if (unbounded && ledger.canSpool && asError(thrown).code === 'billing_unavailable') return undefined
    throw thrown
  }
}

/** Tokens of each choice that its caller may ask for in the place of more. Undefined where fewer would not do. */
function affordable({ room }: Exhausted, expected: Estimate): OutputLimit | undefined {
  if (expected.least > 0 || expected.most === 0) return undefined
  const tokens = Math.floor(tokensWithin(expected, room) / expected.choices)
  return tokens < expected.most ? { param: 'max_tokens', tokens } : undefined
}

/** Throws for what a coding plan excludes. */
const holdFor = (
  ex: Exchange,
  id: string,
  amount: Money,
  least: Money,
  spare: Money | undefined,
  now: number,
): HoldRequest => ({
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

/** How an answer is charged. */
interface Settlement {
  readonly hold: Hold | undefined
  /** Maximum of an estimate, never above the held amount. Undefined when nothing bounds the hold. */
  readonly most: Money | undefined
  readonly storageRate: bigint
  readonly payer: Principal
}

async function settle(
  ex: Exchange,
  outcome: Outcome,
  isWhole: boolean,
  { hold, most, storageRate, payer }: Settlement,
  services: Services,
): Promise<void> {
  const { metrics, now } = services
  ex.meter.complete(!isWhole || ex.answer.isCut, most)
  if (ex.caller.principal!.retains) ex.answer.storage = storageOf(ex.usage, storageRate)
  const cost = ex.meter.cost
  const delivered = ex.streaming && ex.timings.firstToken > 0
  await keep(rowOf(ex, outcome, cost?.total ?? null, now(), hold?.amount), hold, delivered, services, payer)
  const { provider, model } = labelsOf(ex.target!.mapping)
  for (const [kind, count] of Object.entries(ex.usage)) metrics.tokens(provider, model, kind, count)
  if (cost) metrics.cost(provider, model, toNumber(cost.total))
  else metrics.unpriced(provider, model)
}
