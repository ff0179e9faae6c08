/**
 * Money around one attempt: reserves before the upstream is called, charges once, before the last byte leaves.
 * An attempt that fails costs nothing; a stream that is cut short is charged for what was delivered.
 */
import { asError, errors, type GatewayError } from '../core/error.ts'
import type { Event } from '../core/event.ts'
import type { Exchange, Outcome } from '../core/exchange.ts'
import type { FilterFactory, Reply } from '../core/filter.ts'
import { type Money, parseDecimal, toNumber } from '../core/money.ts'
import { seriesOf } from '../core/offer.ts'
import type { Hold, HoldRequest, Ledger, RequestRow, Services } from '../core/ports.ts'
import { type Infer, s } from '../core/schema.ts'
import { isByok } from '../routing/policy.ts'
import { Checkpoints } from './checkpoints.ts'
import { allowanceOf, discounted, estimate, payerOf, refusal, storageOf } from './funding.ts'
import { identityOf, rowOf } from './row.ts'

const options = s.object({
  /** Answer tokens that are reserved when the caller sets no `max_tokens`. */
  default_output: s.default(s.integer({ minimum: 1 }), 4096),
  /** USD per million tokens, of organizations that pay for the storage of their data. */
  storage: s.default(s.decimal(), '0.01'),
})

/** USD per million tokens with so many places is pico-USD per token. */
const TOKEN_PLACES = 6

/** Beyond this after a request's total time its hold belongs to nobody. */
const GRACE_MS = 60_000

export const billing: FilterFactory<Infer<typeof options>> = {
  name: 'billing',
  options,
  needs: ['principal', 'target'],
  gives: ['charge'],
  create({ default_output, storage }, services) {
    const { ledger, now } = services
    const storageRate = parseDecimal(storage, TOKEN_PLACES)
    const checkpoints = new Checkpoints(services)
    return {
      async handle(ex, next) {
        const target = discounted(ex.target!, ex.principal!)
        ex.target = target
        const { mapping, provider } = target
        const amount = estimate(ex, default_output)
        if (amount === null && mapping.unpriced !== 'allow' && !isByok(target.credential)) {
          const refused = errors.unpriced(mapping.model.id, provider.id, target.price && 'what is asked of ')
          // Another provider may have the price.
          throw refused.with({ failover: true })
        }
        const hold = await reserve(holdFor(ex, amount ?? 0n, now()), ledger)
        let reply: Reply
        try {
          reply = await next()
        } catch (thrown) {
          // Not awaited, so that it shares a transaction with the next attempt's hold: a crash always finds one of them.
          void release(hold, services)
          throw thrown
        }
        if (hold && ex.streaming) checkpoints.begin(ex, hold)
        const conclude = (outcome: Outcome) => settle(ex, outcome, hold, storageRate, services)
        reply.events = new Charged(ex, reply.events, conclude, () => release(hold, services))
        return reply
      },
      finish(ex) {
        checkpoints.end(ex)
        if (!ex.principal || !ex.request || ex.kept) return
        return ledger.record(rowOf(ex, ex.outcome ?? 'error', 0n, now()))
      },
    }
  },
}

/**
 * Undefined when the ledger cannot be written, for who pays the provider itself and has no limit that would have to be
 * checked: that one is served all the same.
 */
async function reserve(request: HoldRequest, ledger: Ledger): Promise<Hold | undefined> {
  try {
    const hold = await ledger.hold(request)
    if (hold === 'insufficient') throw errors.insufficientCredits()
    if ('exhausted' in hold) throw refusal(hold)
    return hold
  } catch (thrown) {
    const unbounded = request.byok && request.principal.budgets.length === 0
    if (unbounded && ledger.canSpool && asError(thrown).code === 'billing_unavailable') return undefined
    throw thrown
  }
}

/** Throws for what a coding plan excludes. */
const holdFor = (ex: Exchange, amount: Money, now: number): HoldRequest => ({
  id: `${ex.logId}:${ex.attempts.length}`,
  request: identityOf(ex),
  principal: payerOf(ex),
  amount,
  expiresAt: now + ex.target!.provider.timeouts.total + GRACE_MS,
  byok: isByok(ex.target!.credential),
  allowance: allowanceOf(ex),
})

type Batch = IteratorResult<readonly Event[]>

/**
 * The answer's events; ends only when the charge for them is durable. Written by hand: a generator around another
 * costs three turns of the queue a batch.
 */
class Charged implements AsyncIterable<readonly Event[]>, AsyncIterator<readonly Event[]> {
  readonly #ex: Exchange
  readonly #inner: AsyncIterator<readonly Event[]>
  readonly #settle: (outcome: Outcome) => Promise<void>
  readonly #release: () => Promise<void>
  #concluded = false

  constructor(
    ex: Exchange,
    events: Reply['events'],
    settle: (outcome: Outcome) => Promise<void>,
    release: () => Promise<void>,
  ) {
    this.#ex = ex
    this.#inner = events[Symbol.asyncIterator]()
    this.#settle = settle
    this.#release = release
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<Batch> {
    return this.#inner.next().then(this.#pass, this.#fail)
  }

  async return(): Promise<Batch> {
    try {
      await this.#inner.return?.()
    } finally {
      await this.#conclude(false)
    }
    return { done: true, value: undefined }
  }

  readonly #pass = (result: Batch): Batch | Promise<Batch> =>
    result.done ? this.#conclude(this.#ex.failure === undefined).then(() => result) : result

  readonly #fail = (thrown: unknown): Promise<Batch> =>
    this.#conclude(false).then(() => {
      throw thrown
    })

  async #conclude(complete: boolean): Promise<void> {
    if (this.#concluded) return
    this.#concluded = true
    const ex = this.#ex
    const outcome: Outcome = complete ? 'ok' : ex.signal.aborted ? 'aborted' : 'error'
    if (!complete && !(ex.streaming && ex.marks.firstToken > 0)) return this.#release()
    ex.kept = true
    await this.#settle(outcome)
  }
}

/** A hold that cannot be given back now is given back when it expires; the answer does not depend on it. */
async function release(hold: Hold | undefined, { ledger, log }: Services): Promise<void> {
  if (!hold) return
  try {
    await ledger.void(hold)
  } catch (err) {
    log.warn({ err, hold: hold.id }, 'a hold could not be given back; it will expire')
  }
}

/**
 * Who pays the provider itself is not kept waiting by a ledger that cannot be written. Others are told of a failure,
 * and what was `delivered` to them is charged as soon as the ledger can be written (reliability B.10).
 */
async function keep(
  row: RequestRow,
  hold: Hold | undefined,
  delivered: boolean,
  { ledger, log }: Services,
): Promise<void> {
  try {
    if (hold) return await ledger.settle(hold, row)
  } catch (thrown) {
    if (!ledger.canSpool) throw thrown
    if (hold?.funds !== 'byok') {
      // The caller is told of the first failure.
      const report = (err: unknown) =>
        log.warn({ err, hold: hold?.id }, 'a charge could not be spooled; its hold will expire')
      if (delivered) await ledger.spool(failed(row, asError(thrown)), hold).catch(report)
      throw thrown
    }
  }
  await ledger.spool(row)
}

/** The row of an answer that was whole but for its end. */
const failed = (row: RequestRow, { status, code }: GatewayError): RequestRow =>
  row.outcome === 'ok' ? { ...row, outcome: 'error', status, errorCode: code } : row

async function settle(
  ex: Exchange,
  outcome: Outcome,
  hold: Hold | undefined,
  storageRate: bigint,
  services: Services,
): Promise<void> {
  const { metrics, now } = services
  ex.completeUsage(outcome !== 'ok')
  if (ex.principal!.retains) ex.storage = storageOf(ex.usage, storageRate)
  const cost = ex.cost
  const delivered = ex.streaming && ex.marks.firstToken > 0
  await keep(rowOf(ex, outcome, cost?.total ?? null, now()), hold, delivered, services)
  const { mapping, provider } = ex.target!
  const series = seriesOf(mapping.model)
  for (const [kind, count] of Object.entries(ex.usage)) metrics.tokens(provider.id, series, kind, count)
  if (cost) metrics.cost(provider.id, series, toNumber(cost.total))
  else metrics.unpriced(provider.id, series)
}
