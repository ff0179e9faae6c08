/**
 * Limits, plans and balances that a transaction has locked: read once, computed with the rules that SQLite shares, and
 * written once.
 */
import type { Money } from '../../core/money.ts'
import type { PlanName } from '../../core/plan.ts'
import type { Allowance, Budget, Exhausted, Funds, Principal } from '../../core/ports.ts'
import {
  type BudgetAccount,
  currentBudget,
  exhaustedBudget,
  periodEnd,
  roomIn,
  withSpending,
} from '../rules/budgets.ts'
import { bookedAt, currentPlan, exhaustedPlan, fundsOf, type PlanAccount, withUse } from '../rules/plans.ts'
import type { BudgetAccounts, CreditAccounts, Passed, PlanAccounts } from '../rules/reservations.ts'
import type { Sql } from '../sql/sql.ts'
import { jsonOf } from './json.ts'

/** Ids of the rows that a transaction locks. */
export interface AccountIds {
  readonly limits: Iterable<string>
  /** Organizations whose plan may pay. */
  readonly plans: Iterable<string>
  /** Organizations whose credits may pay. */
  readonly credits: Iterable<string>
}
/** A line of the ledger. */
export interface Entry {
  readonly org_id: string
  readonly request_id: string
  readonly kind: 'charge' | 'plan'
  readonly amount: string
  readonly created_at: number
}

interface Locked {
  readonly limits: readonly LimitRow[] | null
  readonly plans: readonly PlanRow[] | null
  readonly credits: readonly { org_id: string; balance: string; held: string }[] | null
}
interface LimitRow {
  id: string
  kind: Budget['of']
  period: Budget['period']
  zone: string
  amount: string
  period_at: string
  spent: string
  held: string
}
interface PlanRow {
  org_id: string
  plan: PlanName | null
  since: number
  overflow: boolean
  month_at: number
  used: string
  held: string
  week_at: number | null
  premium_used: string
  premium_held: string
}
interface Credit {
  /** As it was locked. */
  readonly balance: Money
  readonly held: Money
  /** Amount that this transaction adds. */
  more: Money
  used: Money
}

/** Accounts of one transaction; whatever is not there counts nothing. */
export class LockedAccounts {
  readonly limits: LockedLimits
  readonly plans: LockedPlans
  readonly credits: LockedCredits

  private constructor({ limits, plans, credits }: Locked) {
    this.limits = new LockedLimits(limits ?? [])
    this.plans = new LockedPlans(plans ?? [])
    this.credits = new LockedCredits(credits ?? [])
  }

  /** Within a transaction. */
  static async lock(sql: Sql, { limits, plans, credits }: AccountIds): Promise<LockedAccounts> {
    const ids = [limits, plans, credits].map(some => JSON.stringify([...new Set(some)]))
    const [row] = await sql.query<{ locked: Locked }>('SELECT lock_accounts_v1($1, $2, $3) AS locked', ids)
    return new LockedAccounts(row!.locked)
  }

  /** Within the same transaction. */
  async write(sql: Sql, entries: readonly Entry[], now: number): Promise<void> {
    const rows = [this.limits.changed(now), this.plans.changed(), this.credits.changed(), entries]
    if (rows.every(some => some.length === 0)) return
    await sql.query('SELECT write_accounts_v1($1, $2, $3, $4)', rows.map(jsonOf))
  }
}

class LockedLimits implements BudgetAccounts {
  readonly #accounts = new Map<string, BudgetAccount>()
  readonly #changed = new Set<string>()

  constructor(rows: readonly LimitRow[]) {
    for (const { id, kind, period, zone, amount, period_at, spent, held } of rows) {
      const amounts = { limit: BigInt(amount), spent: BigInt(spent), held: BigInt(held) }
      this.#accounts.set(id, { id, of: kind, period, zone, periodAt: Number(period_at), ...amounts })
    }
  }

  reserve(ids: readonly string[], amount: Money, now: number, passed?: Passed): Exhausted | undefined {
    for (const id of ids) {
      if (passed?.has(id)) continue
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

  changed(now: number) {
    return [...this.#changed].map(id => {
      const account = this.#accounts.get(id)!
      const amounts = { spent: String(account.spent), held: String(account.held) }
      return { id, period_at: account.periodAt, ends_at: periodEnd(account, now) ?? NEVER, ...amounts }
    })
  }

  #change(id: string, now: number, held: Money, cost: Money): void {
    const account = this.#current(id, now)
    if (!account) return
    this.#accounts.set(id, withSpending(account, held, cost))
    this.#changed.add(id)
  }

  #current(id: string, now: number): BudgetAccount | undefined {
    const account = this.#accounts.get(id)
    return account && currentBudget(account, now)
  }
}

/** End of the period of a limit of all time. */
const NEVER = Number.MAX_SAFE_INTEGER

class LockedPlans implements PlanAccounts {
  readonly #accounts = new Map<string, PlanAccount>()
  readonly #changed = new Set<string>()

  constructor(rows: readonly PlanRow[]) {
    for (const { org_id, plan, since, overflow, month_at, week_at, ...row } of rows) {
      this.#accounts.set(org_id, {
        plan,
        since,
        overflow,
        monthAt: month_at,
        used: BigInt(row.used),
        held: BigInt(row.held),
        weekAt: week_at ?? undefined,
        premiumUsed: BigInt(row.premium_used),
        premiumHeld: BigInt(row.premium_held),
      })
    }
  }

  reserve(orgId: string, allowance: Allowance, amount: Money, now: number): Funds | Exhausted {
    const account = this.#current(orgId, now)
    const exhausted = exhaustedPlan(account, allowance, amount, now)
    if (exhausted) return exhausted
    const funds = fundsOf(allowance)
    this.#change(orgId, account, funds, amount, 0n, now)
    return funds
  }

  release(orgId: string, funds: Funds, held: Money, cost: Money, now: number): number {
    const account = this.#current(orgId, now)
    this.#change(orgId, account, funds, -held, cost, now)
    return bookedAt(account, now)
  }

  changed() {
    return [...this.#changed].map(org_id => {
      const account = this.#accounts.get(org_id)!
      const [used, held] = [String(account.used), String(account.held)]
      const [premium_used, premium_held] = [String(account.premiumUsed), String(account.premiumHeld)]
      return {
        org_id,
        month_at: account.monthAt,
        used,
        held,
        week_at: account.weekAt ?? null,
        premium_used,
        premium_held,
      }
    })
  }

  #change(orgId: string, account: PlanAccount | undefined, funds: Funds, held: Money, cost: Money, now: number): void {
    if (!account) return
    this.#accounts.set(orgId, withUse(account, funds, held, cost, now))
    this.#changed.add(orgId)
  }

  #current(orgId: string, now: number): PlanAccount | undefined {
    const account = this.#accounts.get(orgId)
    return account && currentPlan(account, now)
  }
}

class LockedCredits implements CreditAccounts {
  readonly #accounts = new Map<string, Credit>()

  constructor(rows: readonly { org_id: string; balance: string; held: string }[]) {
    for (const { org_id, balance, held } of rows) {
      this.#accounts.set(org_id, { balance: BigInt(balance), held: BigInt(held), more: 0n, used: 0n })
    }
  }

  reserve({ orgId, account }: Principal, amount: Money): boolean {
    if (amount === 0n) return true
    const { balance, held } = this.#now(orgId)
    if (account !== 'open' && balance - held < amount) return false
    this.#change(orgId, amount, 0n)
    return true
  }

  room(orgId: string): Pick<Exhausted, 'room' | 'held'> {
    const { balance, held } = this.#now(orgId)
    return roomIn(balance, held)
  }

  release(orgId: string, held: Money, cost: Money): void {
    this.#change(orgId, -held, cost)
  }

  changed() {
    return [...this.#accounts]
      .filter(([, { more, used }]) => more !== 0n || used !== 0n)
      .map(([org_id, { more, used }]) => ({ org_id, held: String(more), used: String(used) }))
  }

  #change(orgId: string, held: Money, used: Money): void {
    const account = this.#accounts.get(orgId)
    if (!account) return
    account.more += held
    account.used += used
  }

  #now(orgId: string): { balance: Money; held: Money } {
    const account = this.#accounts.get(orgId)
    return account
      ? { balance: account.balance - account.used, held: account.held + account.more }
      : { balance: 0n, held: 0n }
  }
}
