/** Limits and coding plans: one row each, read and written once per transaction. */
import type { Statement } from 'better-sqlite3'
import type { Budget } from '../../core/ports.ts'
import type { LimitStanding } from '../../limits/alerts.ts'
import { budgetOf } from '../rules/budgets.ts'
import { type PlanRow, planAccount } from '../rules/plans.ts'
import { TransactionLimits, TransactionPlans } from '../rules/transaction-accounts.ts'
import { accountOf, type BudgetRow } from '../sql/budgets.ts'
import type { Sqlite } from './open.ts'
import type { Participant, Writer } from './writer.ts'

const COLUMNS = 'id, kind, period, zone, amount, period_at, spent, held'

/** Spending and holds of limits, in nano-USD by their ids. `reserve` and `release` run within a transaction of the writer. */
export class Budgets extends TransactionLimits implements Participant {
  readonly #write: Statement
  readonly #begin: Statement

  constructor(db: Sqlite, writer: Writer) {
    const read = db.prepare<[string], BudgetRow>(`SELECT ${COLUMNS} FROM budgets WHERE id = ?`).safeIntegers()
    super(id => {
      const row = read.get(id)
      return row && accountOf(row)
    })
    this.#write = db.prepare('UPDATE budgets SET period_at = ?, spent = ?, held = ? WHERE id = ?')
    this.#begin = db.prepare(`
      INSERT INTO budgets (id, subject, kind, period, zone, amount, period_at, spent, held) VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0)
      ON CONFLICT (id) DO UPDATE SET amount = excluded.amount`)
    writer.join(this)
  }

  /** Makes a limit that is not there, and sets its amount. */
  begin({ id, of, limit, period, zone }: Budget, now: number): void {
    const known = this.current(id, now)
    if (known?.limit === limit) return
    this.#begin.run(id, id, of, period, zone, limit)
    this.replace(id, known && { ...known, limit })
  }

  /** Within a transaction that has changed these. */
  standing(ids: readonly string[], now: number): LimitStanding[] {
    return ids.flatMap(id => {
      const account = this.current(id, now)
      return account ? [{ ...budgetOf(account), spent: account.spent }] : []
    })
  }

  beforeCommit(): void {
    for (const [id, { periodAt, spent, held }] of this.changed()) this.#write.run(periodAt, spent, held, id)
    this.clear()
  }

  undone(): void {
    this.clear()
  }
}

/** Use and holds of coding plans' allowances, in nano-USD by organization. `reserve` and `release` run within a transaction of the writer. */
export class Subscriptions extends TransactionPlans implements Participant {
  readonly #write: Statement

  constructor(db: Sqlite, writer: Writer) {
    const read = db.prepare<[string], PlanRow>('SELECT * FROM subscriptions WHERE org_id = ?').safeIntegers()
    super(orgId => {
      const row = read.get(orgId)
      return row && planAccount(row)
    })
    this.#write = db.prepare(`
      UPDATE subscriptions SET month_at = ?, used = ?, held = ?, week_at = ?, premium_used = ?, premium_held = ?
      WHERE org_id = ?`)
    writer.join(this)
  }

  beforeCommit(): void {
    for (const [orgId, account] of this.changed()) {
      const { monthAt, used, held, weekAt, premiumUsed, premiumHeld } = account
      this.#write.run(monthAt, used, held, weekAt ?? null, premiumUsed, premiumHeld, orgId)
    }
    this.clear()
  }

  undone(): void {
    this.clear()
  }
}
