/** Limits and plans within one transaction: each account is read once, and written once if it has changed. */
import type { Money } from '../../core/money.ts'
import type { Allowance, Exhausted, Funds } from '../../core/ports.ts'
import { type BudgetAccount, currentBudget, exhaustedBudget, withSpending } from './budgets.ts'
import { bookedAt, currentPlan, exhaustedPlan, fundsOf, type PlanAccount, withUse } from './plans.ts'
import type { BudgetAccounts, Passed, PlanAccounts } from './reservations.ts'

/** Accounts by id. One that is not there counts nothing. */
class TransactionAccounts<A> {
  readonly #read: (id: string) => A | undefined
  readonly #asOf: (account: A, now: number) => A
  /** Undefined for those that are not there. */
  readonly #accounts = new Map<string, A | undefined>()
  readonly #changed = new Set<string>()

  /** `read` reads an account when it is first needed, `asOf` begins a new period of it. */
  constructor(read: (id: string) => A | undefined, asOf: (account: A, now: number) => A) {
    this.#read = read
    this.#asOf = asOf
  }

  /** Returns the account as of `now`. */
  current(id: string, now: number): A | undefined {
    let account = this.#accounts.get(id)
    if (!account && !this.#accounts.has(id)) {
      account = this.#read(id)
      this.#accounts.set(id, account)
    }
    return account && this.#asOf(account, now)
  }

  /** Replaces an account that is to be written. */
  change(id: string, account: A): void {
    this.#accounts.set(id, account)
    this.#changed.add(id)
  }

  /** Replaces an account as it is written already; undefined to read it again. */
  replace(id: string, account: A | undefined): void {
    if (account) this.#accounts.set(id, account)
    else this.#accounts.delete(id)
  }

  /** Accounts to write. */
  changed(): [id: string, account: A][] {
    return Array.from(this.#changed, id => [id, this.#accounts.get(id)!])
  }

  /** Forgets all, at the end of the transaction. */
  clear(): void {
    this.#accounts.clear()
    this.#changed.clear()
  }
}

/** Spending and holds of limits. */
export class TransactionLimits extends TransactionAccounts<BudgetAccount> implements BudgetAccounts {
  constructor(read: (id: string) => BudgetAccount | undefined) {
    super(read, currentBudget)
  }

  reserve(ids: readonly string[], amount: Money, now: number, passed?: Passed): Exhausted | undefined {
    for (const id of ids) {
      if (passed?.has(id)) continue
      const account = this.current(id, now)
      const exhausted = account && exhaustedBudget(account, amount, now)
      if (exhausted) return exhausted
    }
    for (const id of ids) this.#add(id, now, amount, 0n)
    return undefined
  }

  release(ids: readonly string[], held: Money, cost: Money, now: number): void {
    for (const id of ids) this.#add(id, now, -held, cost)
  }

  #add(id: string, now: number, held: Money, cost: Money): void {
    const account = this.current(id, now)
    if (account) this.change(id, withSpending(account, held, cost))
  }
}

/** Use and holds of coding plans' allowances, by organization. */
export class TransactionPlans extends TransactionAccounts<PlanAccount> implements PlanAccounts {
  constructor(read: (orgId: string) => PlanAccount | undefined) {
    super(read, currentPlan)
  }

  reserve(orgId: string, allowance: Allowance, amount: Money, now: number): Funds | Exhausted {
    const account = this.current(orgId, now)
    const exhausted = exhaustedPlan(account, allowance, amount, now)
    if (exhausted) return exhausted
    const funds = fundsOf(allowance)
    if (account) this.change(orgId, withUse(account, funds, amount, 0n, now))
    return funds
  }

  release(orgId: string, funds: Funds, held: Money, cost: Money, now: number): number {
    const account = this.current(orgId, now)
    if (account) this.change(orgId, withUse(account, funds, -held, cost, now))
    return bookedAt(account, now)
  }
}
