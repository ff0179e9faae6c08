/** Ends the hold of an attempt: with a charge for its answer, or without one. */
import type { Outcome } from '../../core/answer.ts'
import type { Exchange } from '../../core/exchange.ts'
import { toNumber } from '../../core/money.ts'
import { labelsOf } from '../../core/offer.ts'
import type { Hold, Principal, RequestRow, Services } from '../../core/ports.ts'
import { asError, CLIENT_CLOSED, type GatewayError } from '../../lib/error.ts'
import type { AlertCaller } from '../../limits/alerts.ts'
import { storageOf } from './funding.ts'
import type { Meter } from './meter.ts'
import { rowOf } from './row.ts'

/** An attempt with its money. */
interface HeldAttempt {
  /** Undefined for a request that is served while the ledger cannot be written. */
  readonly hold: Hold | undefined
  /** Meter of an answer that can be ended; it may have extended the hold. */
  readonly meter: Meter | undefined
  readonly payer: Principal
  /** Whether an estimate costs at most what is held. */
  readonly isBounded: boolean
  /** Rate for stored data, in pico-USD per token. */
  readonly storageRate: bigint
}

/** Exchanges that have a request row. */
export const recorded = new WeakSet<Exchange>()

/** Settles or releases the hold of an attempt. Only one of its methods is called, and once. */
export class Conclusion {
  readonly #ex: Exchange
  readonly #attempt: HeldAttempt
  readonly #services: Services

  constructor(ex: Exchange, attempt: HeldAttempt, services: Services) {
    this.#ex = ex
    this.#attempt = attempt
    this.#services = services
  }

  /** Charges the answer. `isWhole`: all that the provider says of it was read, also where its client has left. */
  async settle(outcome: Outcome, isWhole: boolean): Promise<void> {
    const ex = this.#ex
    const { isBounded, storageRate, payer } = this.#attempt
    const { metrics, now } = this.#services
    recorded.add(ex)
    const hold = this.#ended()
    const most = isBounded || ex.isOwed || ex.answer.billedFailure ? hold?.amount : undefined
    ex.meter.complete(!isWhole || ex.answer.isCut, most)
    if (ex.caller.principal!.retains) ex.answer.storage = storageOf(ex.usage, storageRate)
    const cost = ex.meter.cost
    const delivered = ex.streaming && ex.timings.firstToken > 0
    await keep(rowOf(ex, outcome, cost?.total ?? null, now(), hold?.amount), hold, delivered, this.#services, payer)
    const { provider, model } = labelsOf(ex.target!.mapping)
    for (const [kind, count] of Object.entries(ex.usage)) metrics.tokens(provider, model, kind, count)
    if (cost) metrics.cost(provider, model, toNumber(cost.total))
    else metrics.unpriced(provider, model)
  }

  /** Ends an attempt that has failed, which is free with the exceptions of `src/filters/billing/index.ts`. */
  async failed(error: GatewayError): Promise<void> {
    const ex = this.#ex
    if (error.billed && !ex.answer.billedFailure) ex.failedWith([], error)
    const { billedFailure } = ex.answer
    // A client that has left pays, but not where its provider fails after that.
    if (ex.isOwed && error.status === CLIENT_CLOSED) await this.settle('aborted', billedFailure === 'parts')
    else if (billedFailure) await this.settle('error', billedFailure === 'whole')
    // Not awaited, so that it shares a transaction with the next attempt's hold: a crash always finds one of them.
    else void this.release()
  }

  /** Gives all of the hold back. Never rejects. */
  release(): Promise<void> {
    return release(this.#ended(), this.#services)
  }

  /** Ends the meter, and returns the hold as it is then. */
  #ended(): Hold | undefined {
    const { hold, meter } = this.#attempt
    meter?.end()
    return meter?.hold ?? hold
  }
}

/**
 * Requests that their caller pays for do not wait for a ledger that cannot be written. Other requests fail. Once the ledger
 * can be written, what was `delivered` is charged, and the hold of what was not ends (docs/contract.md#store-failures).
 */
export async function keep(
  row: RequestRow,
  hold: Hold | undefined,
  delivered: boolean,
  { ledger, log, alerts }: Services,
  caller?: AlertCaller,
): Promise<void> {
  try {
    if (hold) {
      const tells = caller !== undefined && alerts?.isOn === true
      const standing = await ledger.settle(hold, row, tells)
      if (tells && standing) alerts.settled(caller, standing)
      return
    }
  } catch (thrown) {
    if (!ledger.canSpool) throw thrown
    if (hold?.funds !== 'byok') {
      // The caller gets the first failure.
      const report = (err: unknown) => log.warn({ err, hold: hold?.id }, 'charge spool failed; its hold will expire')
      const ended = failed(row, asError(thrown))
      await ledger.spool(delivered ? ended : { ...ended, cost: row.cost && 0n, storage: 0n }, hold).catch(report)
      throw thrown
    }
  }
  await ledger.spool(row)
}

/** The row of an answer that failed while its charge was written. */
const failed = (row: RequestRow, { status, code }: GatewayError): RequestRow =>
  row.outcome === 'ok' ? { ...row, outcome: 'error', status, errorCode: code } : row

/** A hold that cannot be given back now is given back when it expires; the answer does not depend on it. */
export async function release(hold: Hold | undefined, { ledger, log }: Services): Promise<void> {
  if (!hold) return
  try {
    await ledger.void(hold)
  } catch (err) {
    log.warn({ err, hold: hold.id }, 'hold release failed; the hold will expire')
  }
}
