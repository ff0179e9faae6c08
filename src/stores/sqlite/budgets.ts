/** What is spent and held of the limits of keys and members: one row each, read and written once per transaction. */
import type { Statement } from 'better-sqlite3'
import type { Money } from '../../core/money.ts'
import type { Budget, BudgetState, Exhausted } from '../../core/ports.ts'
import { type Period, type Span, spanOf } from '../../lib/period.ts'
import type { Sqlite } from './open.ts'
import type { Participant, Writer } from './writer.ts'

interface BudgetRow {
  id: string
  kind: Budget['of']
  period: Budget['period']
  zone: string
  amount: bigint
  period_at: bigint
  spent: bigint
  held: bigint
}
/** A row as this transaction sees it. */
interface State {
  readonly row: BudgetRow
  changed: boolean
}

const COLUMNS = 'id, kind, period, zone, amount, period_at, spent, held'

export class Budgets implements Participant {
  readonly #read: Statement<[string], BudgetRow>
  readonly #write: Statement
  /** By id; undefined for limits that were taken away since somebody read of them. */
  readonly #states = new Map<string, State | undefined>()

  constructor(db: Sqlite, writer: Writer) {
    this.#read = db.prepare<[string], BudgetRow>(`SELECT ${COLUMNS} FROM budgets WHERE id = ?`).safeIntegers()
    this.#write = db.prepare('UPDATE budgets SET period_at = ?, spent = ?, held = ? WHERE id = ?')
    writer.join(this)
  }

  /**
   * Call within a transaction. Holds `amount` of all, or of none when one has no room for it; a limit that is reached
   * refuses what is free, too.
   */
  reserve(ids: readonly string[], amount: Money, now: number): Exhausted | undefined {
    for (const id of ids) {
      const row = this.#current(id, now)?.row
      if (!row || (row.spent < row.amount && row.spent + row.held + amount <= row.amount)) continue
      const left = row.amount - row.spent - row.held
      return { exhausted: row.kind, period: row.period, resetsAt: endOf(row, now), room: left > 0n ? left : 0n }
    }
    for (const id of ids) this.#change(id, now, amount, 0n)
    return undefined
  }

  /** Call within a transaction: gives back what was held, and counts what it cost in the period that runs. */
  release(ids: readonly string[], held: Money, cost: Money, now: number): void {
    for (const id of ids) this.#change(id, now, -held, cost)
  }

  beforeCommit(): void {
    for (const [id, state] of this.#states) {
      if (state?.changed) this.#write.run(state.row.period_at, state.row.spent, state.row.held, id)
    }
    this.#states.clear()
  }

  undone(): void {
    this.#states.clear()
  }

  #change(id: string, now: number, held: Money, cost: Money): void {
    const state = this.#current(id, now)
    if (!state) return
    state.row.held += held
    state.row.spent += cost
    state.changed = true
  }

  #current(id: string, now: number): State | undefined {
    let state = this.#states.get(id)
    if (!state && !this.#states.has(id)) {
      const row = this.#read.get(id)
      state = row && { row, changed: false }
      this.#states.set(id, state)
    }
    if (state) roll(state.row, now)
    return state
  }
}

/** Reads limits outside of transactions. */
export class BudgetReader {
  readonly #of: Statement<(string | null)[], BudgetRow>

  constructor(db: Sqlite) {
    this.#of = db
      .prepare<(string | null)[], BudgetRow>(
        `SELECT ${COLUMNS} FROM budgets WHERE subject IN (?, ?, ?) ORDER BY kind DESC, period = 'total' DESC`,
      )
      .safeIntegers()
  }

  /** The limits of up to three subjects: a session's first, then a member's, then a key's. */
  of([one = null, two = null, three = null]: readonly (string | null)[], now: number): BudgetState[] {
    return this.#of.all(one, two, three).map(row => {
      roll(row, now)
      const { id, kind, amount, period, zone, spent, held } = row
      return { id, of: kind, limit: amount, period, zone, spent, held, resetsAt: endOf(row, now) }
    })
  }
}

/** A limit without what is spent of it. */
export const budgetOf = ({ id, of, limit, period, zone }: Budget): Budget => ({ id, of, limit, period, zone })

/** In a new period nothing is spent yet; what is held then will be charged in it. */
function roll(row: BudgetRow, now: number): void {
  if (row.period === 'total') return
  const { start } = current(row.period, row.zone, now)
  if (row.period_at >= start) return
  row.period_at = BigInt(start)
  row.spent = 0n
}

const endOf = ({ period, zone }: BudgetRow, now: number): number | undefined =>
  period === 'total' ? undefined : current(period, zone, now).end

const spans = new Map<string, Span>()

/** The span that runs; reckoned once for each. */
function current(period: Period, zone: string, now: number): Span {
  const key = `${period} ${zone}`
  let span = spans.get(key)
  if (!span || now < span.start || now >= span.end) {
    span = spanOf(period, zone, now)
    spans.set(key, span)
  }
  return span
}
