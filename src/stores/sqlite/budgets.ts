/** Spending and holds of limits: one row each, read and written once per transaction. */
import type { Statement } from 'better-sqlite3'
import type { Money } from '../../core/money.ts'
import type { Budget, Exhausted } from '../../core/ports.ts'
import type { LimitStanding } from '../../limits/alerts.ts'
import { type BudgetAccount, budgetOf, currentBudget, exhaustedBudget, withSpending } from '../rules/budgets.ts'
import type { BudgetAccounts, Passed } from '../rules/reservations.ts'
import { accountOf, type BudgetRow } from '../sql/budgets.ts'
import type { Sqlite } from './open.ts'
import type { Participant, Writer } from './writer.ts'

/** A limit within the current transaction. */
interface State {
  account: BudgetAccount
  changed: boolean
}

const COLUMNS = 'id, kind, period, zone, amount, period_at, spent, held'

/** Nano-USD by the limit's id. `reserve` and `release` run within a transaction of the writer. */
export class Budgets implements BudgetAccounts, Participant {
  readonly #read: Statement<[string], BudgetRow>
  readonly #write: Statement
  readonly #begin: Statement
  /** States by id; undefined for limits deleted after they were read. */
  readonly #states = new Map<string, State | undefined>()

  constructor(db: Sqlite, writer: Writer) {
    this.#read = db.prepare<[string], BudgetRow>(`SELECT ${COLUMNS} FROM budgets WHERE id = ?`).safeIntegers()
    this.#write = db.prepare('UPDATE budgets SET period_at = ?, spent = ?, held = ? WHERE id = ?')
    this.#begin = db.prepare(`
      INSERT INTO budgets (id, subject, kind, period, zone, amount, period_at, spent, held) VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0)
      ON CONFLICT (id) DO UPDATE SET amount = excluded.amount`)
    writer.join(this)
  }

  reserve(ids: readonly string[], amount: Money, now: number, passed?: Passed): Exhausted | undefined {
    for (const id of ids) {
      if (passed?.has(id)) continue
      const account = this.#current(id, now)?.account
      const exhausted = account && exhaustedBudget(account, amount, now)
      if (exhausted) return exhausted
    }
    for (const id of ids) this.#change(id, now, amount, 0n)
    return undefined
  }

  /** Makes a limit that is not there, and sets its amount. */
  begin({ id, of, limit, period, zone }: Budget, now: number): void {
    const known = this.#current(id, now)
    if (known?.account.limit === limit) return
    this.#begin.run(id, id, of, period, zone, limit)
    if (known) known.account = { ...known.account, limit }
    else this.#states.delete(id)
  }

  release(ids: readonly string[], held: Money, cost: Money, now: number): void {
    for (const id of ids) this.#change(id, now, -held, cost)
  }

  /** Within a transaction that has changed these. */
  standing(ids: readonly string[], now: number): LimitStanding[] {
    return ids.flatMap(id => {
      const account = this.#current(id, now)?.account
      return account ? [{ ...budgetOf(account), spent: account.spent }] : []
    })
  }

  beforeCommit(): void {
    for (const [id, state] of this.#states) {
      if (state?.changed) this.#write.run(state.account.periodAt, state.account.spent, state.account.held, id)
    }
    this.#states.clear()
  }

  undone(): void {
    this.#states.clear()
  }

  #change(id: string, now: number, held: Money, cost: Money): void {
    const state = this.#current(id, now)
    if (!state) return
    state.account = withSpending(state.account, held, cost)
    state.changed = true
  }

  #current(id: string, now: number): State | undefined {
    let state = this.#states.get(id)
    if (!state && !this.#states.has(id)) {
      const row = this.#read.get(id)
      state = row && { account: accountOf(row), changed: false }
      this.#states.set(id, state)
    }
    if (state) state.account = currentBudget(state.account, now)
    return state
  }
}
