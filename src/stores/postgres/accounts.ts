/**
 * Limits, plans and balances that a transaction has locked: read once, computed with the rules that SQLite shares, and
 * written once.
 */
import type { Money } from '../../core/money.ts'
import type { PlanName } from '../../core/plan.ts'
import type { Budget, Exhausted, Principal } from '../../core/ports.ts'
import { type BudgetAccount, periodEnd, roomIn } from '../rules/budgets.ts'
import type { PlanAccount } from '../rules/plans.ts'
import type { CreditAccounts } from '../rules/reservations.ts'
import { TransactionLimits, TransactionPlans } from '../rules/transaction-accounts.ts'
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
  readonly limits: TransactionLimits
  readonly plans: TransactionPlans
  readonly credits: LockedCredits

  private constructor({ limits, plans, credits }: Locked) {
    this.limits = lockedLimits(limits ?? [])
    this.plans = lockedPlans(plans ?? [])
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
    const rows = [rowsOfLimits(this.limits, now), rowsOfPlans(this.plans), this.credits.changed(), entries]
    if (rows.every(some => some.length === 0)) return
    await sql.query('SELECT write_accounts_v1($1, $2, $3, $4)', rows.map(jsonOf))
  }
}

function lockedLimits(rows: readonly LimitRow[]): TransactionLimits {
  const accounts = new Map<string, BudgetAccount>()
  for (const { id, kind, period, zone, amount, period_at, spent, held } of rows) {
    const amounts = { limit: BigInt(amount), spent: BigInt(spent), held: BigInt(held) }
    accounts.set(id, { id, of: kind, period, zone, periodAt: Number(period_at), ...amounts })
  }
  return new TransactionLimits(id => accounts.get(id))
}

/** End of the period of a limit of all time. */
const NEVER = Number.MAX_SAFE_INTEGER

const rowsOfLimits = (limits: TransactionLimits, now: number) =>
  limits.changed().map(([id, account]) => {
    const amounts = { spent: String(account.spent), held: String(account.held) }
    return { id, period_at: account.periodAt, ends_at: periodEnd(account, now) ?? NEVER, ...amounts }
  })

function lockedPlans(rows: readonly PlanRow[]): TransactionPlans {
  const accounts = new Map<string, PlanAccount>()
  for (const { org_id, plan, since, overflow, month_at, week_at, ...row } of rows) {
    accounts.set(org_id, {
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
  return new TransactionPlans(orgId => accounts.get(orgId))
}

const rowsOfPlans = (plans: TransactionPlans) =>
  plans.changed().map(([org_id, account]) => ({
    org_id,
    month_at: account.monthAt,
    used: String(account.used),
    held: String(account.held),
    week_at: account.weekAt ?? null,
    premium_used: String(account.premiumUsed),
    premium_held: String(account.premiumHeld),
  }))

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
