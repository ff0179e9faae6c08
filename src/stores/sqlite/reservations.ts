/** What attempts hold, and what they come to: of every limit, and of the credits or the plan. Call within transactions. */
import type { Money } from '../../core/money.ts'
import type { Exhausted, Funds, HoldRequest } from '../../core/ports.ts'
import { Balances } from './balances.ts'
import { Budgets } from './budgets.ts'
import type { Sqlite } from './open.ts'
import type { OpenHold } from './orphan.ts'
import { Subscriptions } from './subscriptions.ts'
import type { Writer } from './writer.ts'

/** What a request takes: of the limits, of the credits, of the plan. */
export interface Bill {
  readonly cost: Money
  readonly charge: Money
  readonly planned: Money
}
export const NOTHING: Bill = { cost: 0n, charge: 0n, planned: 0n }

/** What was held, and of whom. */
export interface Reserved {
  readonly amount: Money
  readonly funds: Funds
  /** What kept it from being all that was wanted. */
  readonly refused: Exhausted | undefined
}

const NO_LIMITS: readonly string[] = []

type Wanted = Pick<HoldRequest, 'principal' | 'amount' | 'allowance'>

export class Reservations {
  readonly #balances: Balances
  readonly #budgets: Budgets
  readonly #subscriptions: Subscriptions

  constructor(db: Sqlite, writer: Writer) {
    this.#balances = new Balances(db, writer)
    this.#budgets = new Budgets(db, writer)
    this.#subscriptions = new Subscriptions(db, writer)
  }

  /** For a new hold: the plan pays if it can, then credits, if they may. */
  reserve(wanted: HoldRequest, now: number): Reserved | Exhausted {
    const { budgets } = wanted.principal
    const limits = budgets.length === 0 ? NO_LIMITS : budgets.map(budget => budget.id)
    const funds = wanted.byok ? 'byok' : undefined
    return this.#most(wanted.amount, wanted.least ?? wanted.amount, amount =>
      this.#take(wanted, amount, limits, funds, now),
    )
  }

  /** For a hold that grows, from whoever pays for it. */
  extend({ funds, budgets }: Pick<OpenHold, 'funds' | 'budgets'>, wanted: Wanted, now: number): Reserved | Exhausted {
    const limits = budgets === null ? [] : (JSON.parse(budgets) as string[])
    return this.#most(wanted.amount, 1n, amount => this.#take(wanted, amount, limits, funds, now))
  }

  /** Gives a hold back, and takes what it came to; returns when the plan has paid for it. */
  release({ org_id: orgId, amount, funds, budgets }: OpenHold, { cost, charge, planned }: Bill, now: number): number {
    if (funds === 'credits') this.#balances.release(orgId, amount, charge)
    else if (charge > 0n) this.#balances.release(orgId, 0n, charge)
    if (budgets !== null) this.#budgets.release(JSON.parse(budgets) as string[], amount, cost, now)
    return isPlan(funds) ? this.#subscriptions.release(orgId, funds, amount, planned, now) : now
  }

  /** Takes `amount`, or else as much as all have room for, if that is `least`. */
  #most(amount: Money, least: Money, take: (amount: Money) => Funds | Exhausted): Reserved | Exhausted {
    let refused: Exhausted | undefined
    for (let size = amount; ; size = refused.room) {
      const taken = take(size)
      if (typeof taken === 'string') return { amount: size, funds: taken, refused }
      if (taken.room < least || taken.room >= size) return taken
      refused = taken
    }
  }

  /** Of all or of none. `funds` is who must pay, where that is known. */
  #take(
    wanted: Wanted,
    amount: Money,
    limits: readonly string[],
    funds: Funds | undefined,
    now: number,
  ): Funds | Exhausted {
    const full = limits.length > 0 ? this.#budgets.reserve(limits, amount, now) : undefined
    if (full) return full
    const taken = funds === 'byok' ? funds : this.#pay(wanted, amount, funds, now)
    if (typeof taken !== 'string') this.#budgets.release(limits, amount, 0n, now)
    return taken
  }

  #pay({ principal, allowance }: Wanted, amount: Money, funds: Funds | undefined, now: number): Funds | Exhausted {
    const { orgId } = principal
    const planned =
      allowance && funds !== 'credits' ? this.#subscriptions.reserve(orgId, allowance, amount, now) : undefined
    if (typeof planned === 'string') return planned
    if (planned && (isPlan(funds) || !principal.plan?.overflow)) return planned
    if (this.#balances.reserve(principal, amount)) return 'credits'
    const room = this.#balances.room(orgId)
    if (planned) return planned.room > room ? planned : { ...planned, room }
    return { exhausted: 'credits', period: 'total', resetsAt: undefined, room }
  }
}

export const isPlan = (funds: Funds | undefined): boolean => funds === 'plan' || funds === 'premium'
