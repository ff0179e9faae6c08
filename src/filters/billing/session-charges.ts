/** Money of sessions: each part of one is held for before its provider has it, and settled before its end is shown. */
import type { Mapping } from '../../core/catalog.ts'
import { errors } from '../../core/error.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { Reply } from '../../core/filter.ts'
import { costOf, type Money, type Price, toNumber } from '../../core/money.ts'
import { isFree, labelsOf } from '../../core/offer.ts'
import type { Hold, HoldRequest, Principal, RequestRow, Services } from '../../core/ports.ts'
import type { PartHold, SessionCharges, SessionPart } from '../../core/realtime.ts'
import type { Usage } from '../../core/usage.ts'
import { isByok } from '../../routing/policy.ts'
import { allowanceOf, discounted, exhaustedError, payerOf, storageOf } from './funding.ts'
import { keep, release } from './keep.ts'
import { identityOf, rowOf } from './row.ts'

/** A hold older than a whole session plus this is orphaned and will be released. */
const GRACE_MS = 60_000

/** Opens a session when something can be paid for, and sets `charges` on the exchange. */
export async function admitSession(
  ex: Exchange,
  storageRate: bigint,
  services: Services,
  next: () => Promise<Reply>,
): Promise<Reply> {
  const charges = new Charges(ex, storageRate, services)
  const trial = await charges.reserve(isFree(ex.target!.mapping) ? 0n : 1n, ex.target!.mapping, ex.principal!)
  void release(trial, services)
  ex.charges = charges
  return next()
}

class Charges implements SessionCharges {
  readonly #ex: Exchange
  readonly #storageRate: bigint
  readonly #services: Services
  #count = 0

  constructor(ex: Exchange, storageRate: bigint, services: Services) {
    this.#ex = ex
    this.#storageRate = storageRate
    this.#services = services
  }

  async hold(expected: Usage, mapping = this.#ex.target!.mapping): Promise<PartHold> {
    const { realtimeSecrets } = this.#services
    const principal = await realtimeSecrets.live(this.#ex.principal!.keyId)
    if (!principal) throw errors.invalidKey('it was revoked, or it has expired.')
    const price = this.#priceOf(mapping, principal)
    const cost = costOf(expected, price)
    const target = this.#ex.target!
    if (!cost && mapping.unpriced !== 'allow' && !isByok(target.credential)) {
      throw errors.unpriced(mapping.model.id, target.provider.id)
    }
    const wanted = this.#wanted(cost?.total ?? 0n, mapping, principal)
    const hold = await this.#services.ledger.hold(wanted)
    if ('exhausted' in hold) {
      const refused = exhaustedError(hold, wanted.amount)
      throw hold.exhausted === 'credits' ? refused.with({ code: 'insufficient_credits' }) : refused
    }
    const settlement = { ex: this.#ex, mapping, price, principal, storageRate: this.#storageRate }
    return new HeldPart(hold, wanted, settlement, this.#services)
  }

  /** Throws the refusal. */
  async reserve(amount: Money, mapping: Mapping, principal: Principal): Promise<Hold> {
    const hold = await this.#services.ledger.hold(this.#wanted(amount, mapping, principal))
    if ('exhausted' in hold) throw exhaustedError(hold, amount)
    return hold
  }

  #priceOf(mapping: Mapping, principal: Principal): Price | undefined {
    const target = this.#ex.target!
    return mapping === target.mapping
      ? target.price
      : discounted({ ...target, mapping, price: mapping.price }, principal).price
  }

  #wanted(amount: Money, mapping: Mapping, principal: Principal): HoldRequest {
    const ex = this.#ex
    const id = `${ex.logId}:${this.#count++}`
    return {
      id,
      request: { ...identityOf(ex), id, model: mapping.model.id },
      principal: payerOf(ex, principal),
      amount,
      expiresAt: this.#services.now() + ex.snapshot.realtime.session + GRACE_MS,
      byok: isByok(ex.target!.credential),
      allowance: allowanceOf(ex),
    }
  }
}

/** What the row of a part is made of. */
interface Settlement {
  readonly ex: Exchange
  readonly mapping: Mapping
  readonly price: Price | undefined
  readonly principal: Principal
  readonly storageRate: bigint
}

class HeldPart implements PartHold {
  #hold: Hold
  readonly #wanted: HoldRequest
  readonly #settlement: Settlement
  readonly #services: Services

  constructor(hold: Hold, wanted: HoldRequest, settlement: Settlement, services: Services) {
    this.#hold = hold
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
    const cost = costOf(part.usage, price)?.total
    const { amount } = this.#hold
    // What was held for is not free where its report has no price: a transcript by the hour that is reported in tokens.
    const estimated = part.estimated || (cost === undefined && amount > 0n)
    // An estimate of what was not reported never costs more than was held.
    const isCapped = estimated && (cost === undefined ? amount > 0n : cost > amount)
    const charged = isCapped ? amount : (cost ?? null)
    await keep(this.#rowOf({ ...part, estimated }, charged), this.#hold, true, this.#services)
    const { provider, model } = labelsOf(mapping)
    for (const [kind, count] of Object.entries(part.usage)) metrics.tokens(provider, model, kind, count)
    if (charged === null) metrics.unpriced(provider, model)
    else metrics.cost(provider, model, toNumber(charged))
    return charged
  }

  release(): void {
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
