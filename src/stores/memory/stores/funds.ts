/** Balances, limits and plans in memory, reserved and released per attempt. Call within transactions. */
import type { Money } from '../../../core/money.ts'
import type { Allowance, Exhausted, Funds, Principal } from '../../../core/ports.ts'
import { type BudgetAccount, currentBudget, exhaustedBudget, roomIn, withSpending } from '../../rules/budgets.ts'
import { bookedAt, currentPlan, exhaustedPlan, fundsOf, type PlanAccount, withUse } from '../../rules/plans.ts'
import type { BudgetAccounts, CreditAccounts, PlanAccounts } from '../../rules/reservations.ts'
import type { Tables } from './tables.ts'

/** Balances of organizations; only an account that is not `open` bounds what is reserved. */
export class Credits implements CreditAccounts {
  readonly #tables: Tables

  constructor(tables: Tables) {
    this.#tables = tables
  }

  reserve({ orgId, account }: Principal, amount: Money): boolean {
    const { balance, held } = this.#tables.balance(orgId)
    const isOpen = account === 'open' || this.#tables.organizations.get(orgId)?.account === 'open'
    if (amount > 0n && !isOpen && balance - held < amount) return false
    this.#tables.addToBalance(orgId, { held: amount })
    return true
  }

  room(orgId: string): Pick<Exhausted, 'room' | 'held'> {
    const { balance, held } = this.#tables.balance(orgId)
    return roomIn(balance, held)
  }

  release(orgId: string, held: Money, cost: Money): void {
    this.#tables.addToBalance(orgId, { balance: -cost, held: -held, used: cost })
  }
}

/** Limits of keys, members, sessions and provider keys, by their ids. */
export class Budgets implements BudgetAccounts {
  readonly #tables: Tables

  constructor(tables: Tables) {
    this.#tables = tables
  }

  reserve(ids: readonly string[], amount: Money, now: number): Exhausted | undefined {
    for (const id of ids) {
      const account = this.#current(id, now)
      const exhausted = account && exhaustedBudget(account, amount, now)
      if (exhausted) return exhausted
    }
    for (const id of ids) this.#change(id, now, amount, 0n)
    return undefined
  }

  release(ids: readonly string[], held: Money, cost: Money, now: number): void {
    for (const id of ids) this.#change(id, now, -held, cost)
  }

  #current(id: string, now: number): BudgetAccount | undefined {
    const account = this.#tables.budgets.get(id)
    return account && currentBudget(account, now)
  }

  #change(id: string, now: number, held: Money, cost: Money): void {
    const row = this.#tables.budgets.get(id)
    if (row) this.#tables.budgets.set(id, { ...row, ...withSpending(currentBudget(row, now), held, cost) })
  }
}

/** Allowances of plans, by organization. */
export class Plans implements PlanAccounts {
  readonly #tables: Tables

  constructor(tables: Tables) {
    this.#tables = tables
  }

  reserve(orgId: string, allowance: Allowance, amount: Money, now: number): Funds | Exhausted {
    const exhausted = exhaustedPlan(this.#current(orgId, now), allowance, amount, now)
    if (exhausted) return exhausted
    const funds = fundsOf(allowance)
    this.#change(orgId, funds, amount, 0n, now)
    return funds
  }

  release(orgId: string, funds: Funds, held: Money, cost: Money, now: number): number {
    this.#change(orgId, funds, -held, cost, now)
    return bookedAt(this.#current(orgId, now), now)
  }

  #current(orgId: string, now: number): PlanAccount | undefined {
    const account = this.#tables.plans.get(orgId)
    return account && currentPlan(account, now)
  }

  #change(orgId: string, funds: Funds, held: Money, cost: Money, now: number): void {
    const account = this.#current(orgId, now)
    if (account) this.#tables.plans.set(orgId, { ...withUse(account, funds, held, cost, now), orgId })
  }
}
