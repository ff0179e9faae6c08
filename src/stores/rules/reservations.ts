/** Reserves and releases the money of an attempt: in every limit, and in credits or the plan. */
import type { Money } from '../../core/money.ts'
import type { Allowance, Budget, Exhausted, Funds, Hold, HoldRequest, Principal } from '../../core/ports.ts'
import type { OnLimit } from '../../limits/kinds.ts'
import { type Bill, isPlan, NOTHING } from './settlement.ts'

/** Balances of organizations. Like all methods here, called within a transaction. */
export interface CreditAccounts {
  /** False when the credit does not suffice; an open account always suffices. */
  reserve(principal: Principal, amount: Money): boolean
  /** Credit that can still be held, and that is held. Called for refusals only. */
  room(orgId: string): Pick<Exhausted, 'room' | 'held'>
  /** Releases a hold and takes the cost. */
  release(orgId: string, held: Money, cost: Money): void
}
/** Spending and holds of limits, by id. Ignores deleted limits. */
export interface BudgetAccounts {
  /** Holds `amount` of all, or of none when one has no room. Those that are `passed` need none. */
  reserve(ids: readonly string[], amount: Money, now: number, passed?: Passed): Exhausted | undefined
  /** Releases a hold and counts the cost in the current period. */
  release(ids: readonly string[], held: Money, cost: Money, now: number): void
}
/** Limits without room that hold nevertheless, by id. */
export type Passed = ReadonlyMap<string, Exhausted>

/** Limits of end users, which begin with their first hold. */
export const begunByHold = ({ principal }: Pick<HoldRequest, 'principal'>): readonly Budget[] =>
  principal.budgets.filter(({ of }) => of === 'end-user')

/** Allowances of coding plans. */
export interface PlanAccounts {
  reserve(orgId: string, allowance: Allowance, amount: Money, now: number): Funds | Exhausted
  /** Releases a hold and takes the cost. Returns the booking time: see `bookedAt`. */
  release(orgId: string, funds: Funds, held: Money, cost: Money, now: number): number
}

const NO_LIMITS: readonly string[] = []

/** The ids of limits as a hold keeps them: a JSON array; null for none. */
export const limitsText = (budgets: readonly Budget[]): string | null =>
  budgets.length > 0 ? JSON.stringify(budgets.map(({ id }) => id)) : null
/** Reads what `limitsText` has written. */
export const limitsIn = (budgets: string | null): readonly string[] =>
  budgets === null ? NO_LIMITS : (JSON.parse(budgets) as string[])

/** A hold as of its end. `budgets` is in the format of `limitsText`. */
export type OpenHold = Pick<Hold, 'orgId' | 'amount' | 'funds' | 'budgets'>

/** The amount held, and its source. */
interface Reserved {
  readonly amount: Money
  readonly funds: Funds
  /** Reason why the whole amount, without its spare part, is not held. */
  readonly refused: Exhausted | undefined
  readonly passed?: readonly Exhausted[] | undefined
}

type Wanted = Pick<HoldRequest, 'principal' | 'amount' | 'allowance'>

/** Call within transactions. */
export class Reservations {
  readonly #credits: CreditAccounts
  readonly #budgets: BudgetAccounts
  readonly #plans: PlanAccounts
  /** Limits that the reservation under way has passed. */
  #passed: Map<string, Exhausted> | undefined

  constructor(credits: CreditAccounts, budgets: BudgetAccounts, plans: PlanAccounts) {
    this.#credits = credits
    this.#budgets = budgets
    this.#plans = plans
  }

  /**
   * For a new hold: from the plan if possible, else from credits if allowed. Of what all have room for beyond the amount,
   * half is held, up to what is spare.
   */
  reserve(wanted: HoldRequest, now: number): Reserved | Exhausted {
    const { budgets } = wanted.principal
    const limits = budgets.length === 0 ? NO_LIMITS : budgets.map(budget => budget.id)
    const { amount, least = amount, spare = 0n } = wanted
    // Asks the plan for the amount alone: what is spare leads no request to the credits.
    const funds = wanted.byok ? 'byok' : spare > 0n ? this.#planOf(wanted, now) : undefined
    const take = (size: Money) => this.#take(wanted, size, limits, funds, now)
    this.#passed = undefined
    const taken = this.#most(wanted, amount + 2n * spare, least, take)
    if (!('funds' in taken) || taken.amount < amount) return taken
    const kept = amount + (taken.amount - amount) / 2n
    if (kept < taken.amount) {
      const over = { orgId: wanted.principal.orgId, amount: taken.amount - kept, funds: taken.funds }
      this.release({ ...over, budgets: limits.length === 0 ? null : JSON.stringify(limits) }, NOTHING, now)
    }
    return { amount: kept, funds: taken.funds, refused: undefined, passed: this.#beyond(kept) }
  }

  /** Extends a hold from the source that pays for it. No limit that does not refuse ends an answer. */
  extend({ funds, budgets }: Pick<OpenHold, 'funds' | 'budgets'>, wanted: Wanted, now: number): Reserved | Exhausted {
    const limits = limitsIn(budgets)
    this.#passed = undefined
    return this.#most(wanted, wanted.amount, 1n, amount => this.#take(wanted, amount, limits, funds, now, true))
  }

  /** Releases a hold and takes its bill; returns the booking time of a plan's charge. */
  release({ orgId, amount, funds, budgets }: OpenHold, { cost, charge, planned }: Bill, now: number): number {
    if (funds === 'credits') this.#credits.release(orgId, amount, charge)
    else if (charge > 0n) this.#credits.release(orgId, 0n, charge)
    if (budgets !== null) this.#budgets.release(limitsIn(budgets), amount, cost, now)
    return isPlan(funds) ? this.#plans.release(orgId, funds, amount, planned, now) : now
  }

  /** The plan that pays for the amount; undefined where none does. */
  #planOf({ principal: { orgId }, allowance, amount }: Wanted, now: number): Funds | undefined {
    const plan = allowance && this.#plans.reserve(orgId, allowance, amount, now)
    if (typeof plan !== 'string') return undefined
    this.#plans.release(orgId, plan, amount, 0n, now)
    return plan
  }

  /** Takes `amount`, or the room that all have if that is at least `least`. */
  #most(wanted: Wanted, amount: Money, least: Money, take: (amount: Money) => Funds | Exhausted): Reserved | Exhausted {
    let refused: Exhausted | undefined
    for (let size = amount; ; size = refused.room) {
      const taken = take(size)
      if (typeof taken === 'string') return { amount: size, funds: taken, refused, passed: this.#beyond(size) }
      // Another model takes over as soon as its limit has no room for the whole amount.
      const enough = typeof actionAt(wanted, taken) === 'object' ? wanted.amount : least
      if (taken.room < enough || taken.room >= size) return taken
      refused = taken
    }
  }

  /** Takes from all or none. `funds`: the payer, if already determined. */
  #take(
    wanted: Wanted,
    amount: Money,
    limits: readonly string[],
    funds: Funds | undefined,
    now: number,
    isRunning = false,
  ): Funds | Exhausted {
    let full = limits.length > 0 ? this.#budgets.reserve(limits, amount, now, this.#passed) : undefined
    while (full) {
      const action = actionAt(wanted, full)
      if (action === 'refuse' || (action !== 'notify' && !isRunning)) break
      this.#passed = (this.#passed ?? new Map<string, Exhausted>()).set(full.limitId!, full)
      full = this.#budgets.reserve(limits, amount, now, this.#passed)
    }
    if (full) return full.exhausted === 'end-user' ? { ...full, endUser: wanted.principal.endUser } : full
    const taken = funds === 'byok' ? funds : this.#pay(wanted, amount, funds, now)
    if (typeof taken !== 'string') this.#budgets.release(limits, amount, 0n, now)
    return taken
  }

  /** Limits that have been passed by a hold of `size`. */
  #beyond(size: Money): readonly Exhausted[] | undefined {
    return this.#passed && [...this.#passed.values()].filter(({ room }) => room <= size)
  }

  #pay({ principal, allowance }: Wanted, amount: Money, funds: Funds | undefined, now: number): Funds | Exhausted {
    const { orgId } = principal
    const planned = allowance && funds !== 'credits' ? this.#plans.reserve(orgId, allowance, amount, now) : undefined
    if (typeof planned === 'string') return planned
    if (planned && (isPlan(funds) || !principal.plan?.overflow)) return planned
    if (this.#credits.reserve(principal, amount)) return 'credits'
    const left = this.#credits.room(orgId)
    if (planned) return planned.room > left.room ? planned : { ...planned, ...left }
    return { exhausted: 'credits', period: 'total', resetsAt: undefined, ...left }
  }
}

/** The action at a limit; `refuse` for what is no limit. */
const actionAt = ({ principal }: Wanted, { limitId }: Exhausted): OnLimit =>
  principal.budgets.find(({ id }) => id === limitId)?.onLimit ?? 'refuse'

/** Result of an extension when the hold is no longer open. */
export const nothingLeft: Exhausted = { exhausted: 'credits', period: 'total', resetsAt: undefined, room: 0n, held: 0n }

/** A hold that has ended: nothing left, but its organization and payer. */
export const gone = ({ orgId, funds, budgets }: Hold): OpenHold => ({ orgId, amount: 0n, funds, budgets })
