/** Who pays for an attempt, and how much is held of whom: of every limit, and of the credits or the plan. */
import type { Money } from '../../core/money.ts'
import type { Allowance, Exhausted, Funds, Hold, HoldRequest, Principal } from '../../core/ports.ts'
import { type Bill, isPlan } from './settlement.ts'

/** Balances of organizations. Like all of these, called within a transaction. */
export interface CreditAccounts {
  /** False when the credit does not suffice; an open account always suffices. */
  reserve(principal: Principal, amount: Money): boolean
  /** What credit could still be held; never below 0. */
  room(orgId: string): Money
  /** Gives back what was held and takes what it cost. */
  release(orgId: string, held: Money, cost: Money): void
}
/** What is spent and held of limits, by their ids. A limit that was taken away is passed over. */
export interface BudgetAccounts {
  /** Holds `amount` of all, or of none when one has no room for it. */
  reserve(ids: readonly string[], amount: Money, now: number): Exhausted | undefined
  /** Gives back what was held, and counts what it cost in the period that runs. */
  release(ids: readonly string[], held: Money, cost: Money, now: number): void
}
/** Allowances of coding plans. */
export interface PlanAccounts {
  reserve(orgId: string, allowance: Allowance, amount: Money, now: number): Funds | Exhausted
  /** Gives back what was held, and takes what it cost. Returns when that was: see `bookedAt`. */
  release(orgId: string, funds: Funds, held: Money, cost: Money, now: number): number
}

/** What is held, as its end finds it. `budgets` is a JSON array of ids; null for none. */
export type OpenHold = Pick<Hold, 'orgId' | 'amount' | 'funds' | 'budgets'>

/** What was held, and of whom. */
export interface Reserved {
  readonly amount: Money
  readonly funds: Funds
  /** What kept it from being all that was wanted. */
  readonly refused: Exhausted | undefined
}

const NO_LIMITS: readonly string[] = []

type Wanted = Pick<HoldRequest, 'principal' | 'amount' | 'allowance'>

/** Call within transactions. */
export class Reservations {
  readonly #credits: CreditAccounts
  readonly #budgets: BudgetAccounts
  readonly #plans: PlanAccounts

  constructor(credits: CreditAccounts, budgets: BudgetAccounts, plans: PlanAccounts) {
    this.#credits = credits
    this.#budgets = budgets
    this.#plans = plans
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
  release({ orgId, amount, funds, budgets }: OpenHold, { cost, charge, planned }: Bill, now: number): number {
    if (funds === 'credits') this.#credits.release(orgId, amount, charge)
    else if (charge > 0n) this.#credits.release(orgId, 0n, charge)
    if (budgets !== null) this.#budgets.release(JSON.parse(budgets) as string[], amount, cost, now)
    return isPlan(funds) ? this.#plans.release(orgId, funds, amount, planned, now) : now
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
    const planned = allowance && funds !== 'credits' ? this.#plans.reserve(orgId, allowance, amount, now) : undefined
    if (typeof planned === 'string') return planned
    if (planned && (isPlan(funds) || !principal.plan?.overflow)) return planned
    if (this.#credits.reserve(principal, amount)) return 'credits'
    const room = this.#credits.room(orgId)
    if (planned) return planned.room > room ? planned : { ...planned, room }
    return { exhausted: 'credits', period: 'total', resetsAt: undefined, room }
  }
}

export const nothingLeft: Exhausted = { exhausted: 'credits', period: 'total', resetsAt: undefined, room: 0n }

/** What is left of a hold that has ended: whom it was of, and who pays. */
export const gone = ({ orgId, funds, budgets }: Hold): OpenHold => ({ orgId, amount: 0n, funds, budgets })
