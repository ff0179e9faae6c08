/** Money of sessions: each part of one is held for before its provider has it, and settled before its end is shown. */

import { costOf } from '../../core/cost.ts'
import type { Exchange } from '../../core/exchange.ts'
import { type Money, type Price, toNumber } from '../../core/money.ts'
import { isFree, labelsOf } from '../../core/offer.ts'
import type { Hold, HoldRequest, Principal, RequestRow, Services } from '../../core/ports.ts'
import { type PartHold, type SessionCharges, type SessionPart, withOutput } from '../../core/realtime.ts'
import type { Reply } from '../../core/reply.ts'
import type { Mapping } from '../../core/translator.ts'
import type { Usage } from '../../core/usage.ts'
import { errors } from '../../lib/error.ts'
import { limited } from '../../metering/settle.ts'
import { isByok } from '../../routing/policy.ts'
import { type PartTokens, passedOf } from '../ratelimit/passed.ts'
import { placeHold } from './at-limit.ts'
import { keep, release } from './conclusion.ts'
import { allowanceOf, discounted, exhaustedError, payerOf, storageOf } from './funding.ts'
import { identityOf, rowOf } from './row.ts'

/** A hold older than a whole session plus this is orphaned and will be released. */
const GRACE_MS = 60_000

interface SessionPrices {
  /** Rate for stored data, in pico-USD per token. */
  readonly storageRate: bigint
  /** Tokens: a lower output limit than this is not sent in the place of a caller's. */
  readonly leastOutput: number
}

/** Opens a session when something can be paid for, and sets `charges` on the exchange. */
export async function admitSession(
  ex: Exchange,
  prices: SessionPrices,
  services: Services,
  next: () => Promise<Reply>,
): Promise<Reply> {
  const charges = new Charges(ex, prices, services)
  const trial = await charges.reserve(isFree(ex.target!.mapping) ? 0n : 1n, ex.target!.mapping, ex.caller.principal!)
  void release(trial, services)
  ex.charges = charges
  return next()
}

class Charges implements SessionCharges {
  readonly #ex: Exchange
  readonly #prices: SessionPrices
  readonly #services: Services
  /** Holds so far, by which they are named: those of an attempt that has failed may not have ended yet. */
  #count: number

  constructor(ex: Exchange, prices: SessionPrices, services: Services) {
    this.#count = ex.charges instanceof Charges ? ex.charges.#count : 0
    this.#ex = ex
    this.#prices = prices
    this.#services = services
  }

  hold(expected: Usage, mapping = this.#ex.target!.mapping): Promise<PartHold> {
    return this.#hold(expected, mapping)
  }

  holdResponse(expected: Usage): Promise<PartHold> {
    const fewest = Math.min(expected.completion ?? 0, this.#prices.leastOutput)
    return this.#hold(expected, this.#ex.target!.mapping, withOutput(expected, fewest))
  }

  /** `least`: what will do in the place of all that is expected. */
  async #hold(expected: Usage, mapping: Mapping, least?: Usage): Promise<PartHold> {
    const { realtimeSecrets } = this.#services
    const principal = await realtimeSecrets.live(this.#ex.caller.principal!.keyId)
    if (!principal) throw errors.invalidKey('it was revoked, or it has expired.')
    const issue = this.#ex.caller.access?.issue(mapping)
    if (issue) throw errors.forbidden(`${issue.reason}.`)
    const price = this.#priceOf(mapping, principal)
    const cost = costOf(expected, price)
    const target = this.#ex.target!
    if (!cost && mapping.unpriced !== 'allow' && !isByok(target.credential)) {
      throw errors.unpriced(mapping.model.id, target.provider.id)
    }
    const amount = cost?.total ?? 0n
    const wanted = this.#wanted(amount, mapping, principal, least && costOf(least, price)?.total)
    const hold = await placeHold(this.#ex, wanted, this.#services)
    if ('exhausted' in hold) {
      const tokens = outputWithin(expected, price, hold.room)
      const isLess = least !== undefined && hold.room < amount
      const limit = isLess ? ({ param: 'max_output_tokens', tokens } as const) : undefined
      const refused = exhaustedError(hold, wanted.least ?? amount, limit)
      throw hold.exhausted === 'credits' ? refused.with({ code: 'insufficient_credits' }) : refused
    }
    const output = hold.amount < amount ? outputWithin(expected, price, hold.amount) : (expected.completion ?? 0)
    const settlement = { ex: this.#ex, mapping, price, principal, storageRate: this.#prices.storageRate }
    try {
      const tokens = await passedOf(this.#ex)?.beginPart(expected)
      return new HeldPart({ output, hold, tokens }, wanted, settlement, this.#services)
    } catch (thrown) {
      void release(hold, this.#services)
      throw thrown
    }
  }

  /** Throws the refusal. */
  async reserve(amount: Money, mapping: Mapping, principal: Principal): Promise<Hold> {
    const wanted = this.#wanted(amount, mapping, principal)
    const hold = await placeHold(this.#ex, wanted, this.#services)
    if ('exhausted' in hold) throw exhaustedError(hold, amount)
    return hold
  }

  #priceOf(mapping: Mapping, principal: Principal): Price | undefined {
    const target = this.#ex.target!
    return mapping === target.mapping
      ? target.price
      : discounted({ ...target, mapping, price: mapping.price }, principal).price
  }

  #wanted(amount: Money, mapping: Mapping, principal: Principal, least?: Money): HoldRequest {
    const ex = this.#ex
    const id = `${ex.logId}:${this.#count++}`
    return {
      id,
      request: { ...identityOf(ex), id, model: mapping.model.id },
      principal: payerOf(ex, principal),
      amount,
      least,
      expiresAt: this.#services.now() + ex.snapshot.realtime.session + GRACE_MS,
      byok: isByok(ex.target!.credential),
      allowance: allowanceOf(ex),
    }
  }
}

/** Inputs for the row of a part. */
interface Settlement {
  readonly ex: Exchange
  readonly mapping: Mapping
  readonly price: Price | undefined
  readonly principal: Principal
  readonly storageRate: bigint
}

/** Money and tokens of rate limits that a part has. */
interface Held extends Pick<PartHold, 'output'> {
  readonly hold: Hold
  readonly tokens: PartTokens | undefined
}

class HeldPart implements PartHold {
  readonly output: number
  #hold: Hold
  readonly #tokens: PartTokens | undefined
  readonly #wanted: HoldRequest
  readonly #settlement: Settlement
  readonly #services: Services

  constructor({ output, hold, tokens }: Held, wanted: HoldRequest, settlement: Settlement, services: Services) {
    this.output = output
    this.#hold = hold
    this.#tokens = tokens
    this.#wanted = wanted
    this.#settlement = settlement
    this.#services = services
  }

  async extend(usage: Usage): Promise<boolean> {
    const cost = costOf(usage, this.#settlement.price)
    const missing = cost ? cost.total - this.#hold.amount : 0n
    if (missing <= 0n) return true
    const { principal, allowance } = this.#wanted
    this.#hold = await this.#services.ledger.extend(this.#hold, { principal, allowance, amount: missing })
    return this.#hold.amount >= cost!.total
  }

  note(usage: Usage): void {
    const { ledger, log } = this.#services
    const cost = costOf(usage, this.#settlement.price)?.total ?? null
    const warn = (err: unknown) => log.warn({ err, hold: this.#hold.id }, 'session checkpoint failed')
    ledger.checkpoint(this.#hold, { usage, cost }).catch(warn)
  }

  async settle(part: SessionPart): Promise<Money | null> {
    const { mapping, price } = this.#settlement
    const { metrics } = this.#services
    const { amount } = this.#hold
    this.#tokens?.end(part.usage)
    const cost = costOf(part.usage, price)
    // Charges the hold where the report has no price, such as a transcript by the hour that is reported in tokens.
    const isUnknown = !cost && amount > 0n
    const estimated = part.estimated || isUnknown
    const charge = isUnknown ? amount : cost && (estimated ? limited(cost, amount) : cost).total
    await keep(this.#rowOf({ ...part, estimated }, charge), this.#hold, true, this.#services, this.#wanted.principal)
    const { provider, model } = labelsOf(mapping)
    for (const [kind, count] of Object.entries(part.usage)) metrics.tokens(provider, model, kind, count)
    if (charge === null) metrics.unpriced(provider, model)
    else metrics.cost(provider, model, toNumber(charge))
    return charge
  }

  release(): void {
    this.#tokens?.end({})
    void release(this.#hold, this.#services)
  }

  #rowOf(part: SessionPart, cost: Money | null): RequestRow {
    const { ex, mapping, principal, storageRate } = this.#settlement
    const { outcome, failure, usage, at, firstMs } = part
    return {
      ...rowOf(ex, 'ok', cost, this.#services.now()),
      id: `${ex.logId}:${part.id}`,
      at,
      model: mapping.model.id,
      status: outcome === 'ok' ? 200 : (failure?.status ?? 499),
      outcome,
      errorCode: outcome === 'ok' ? null : (failure?.code ?? 'request_cancelled'),
      streamed: true,
      durationMs: Math.max(0, this.#services.now() - at),
      ttftMs: firstMs ?? null,
      usage,
      estimated: part.estimated,
      storage: principal.retains ? storageOf(usage, storageRate) : 0n,
    }
  }
}

/** Tokens of the expected output that `amount` pays for beside the prompt. */
function outputWithin(expected: Usage, price: Price | undefined, amount: Money): number {
  const output = expected.completion ?? 0
  const all = costOf(expected, price)?.total ?? 0n
  const prompt = costOf(withOutput(expected, 0), price)?.total ?? 0n
  if (amount >= all) return output
  return amount > prompt ? Number(((amount - prompt) * BigInt(Math.floor(output))) / (all - prompt)) : 0
}
