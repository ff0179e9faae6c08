/** Spending limits as operators set them. `budgets.ts` keeps their spending. */
import type { Statement } from 'better-sqlite3'
import type { Money } from '../../core/money.ts'
import type { Budget, LimitChange, LimitInput, LimitRecord } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { storable } from '../rules/amounts.ts'
import { limitRecord, limitSetting, spentSince } from '../rules/limits.ts'
import { BudgetReader } from './budgets.ts'
import type { Sqlite } from './open.ts'
import { type Sum, sumAs, sumOf } from './sums.ts'

/** The key and its predecessors, or all keys of the member. */
const OWN = `key_id IN (
  WITH RECURSIVE own (id) AS (
    SELECT id FROM keys WHERE id = @key OR created_by = @member
    UNION SELECT succeeds FROM keys JOIN own USING (id) WHERE succeeds IS NOT NULL
  )
  SELECT id FROM own
)`

/** The rows of `budgets`, by subject: a key, session, member or provider key. Changes are made within a transaction. */
export class Limits {
  readonly #now: () => number
  readonly #reader: BudgetReader
  readonly #insert: Statement
  readonly #update: Statement
  readonly #delete: Statement
  readonly #deleteSlot: Statement
  readonly #spent: Statement<{ key: string | null; member: string | null; from: number }, Sum<'spent'>>
  readonly #spentBetween: Statement<object, Sum<'spent'>>
  readonly #adopt: Statement<{ id: string; key: string | null; member: string | null }, Money>
  readonly #move: Statement
  readonly #forget: Statement

  constructor(db: Sqlite, now: () => number) {
    this.#now = now
    this.#reader = new BudgetReader(db)
    this.#insert = db.prepare(`
      INSERT INTO budgets (id, subject, kind, period, zone, amount, period_at, spent, held)
      VALUES (@id, @subject, @kind, @period, @zone, @amount, @periodAt, @spent, @held)`)
    this.#update = db.prepare('UPDATE budgets SET amount = ? WHERE id = ?')
    this.#delete = db.prepare('DELETE FROM budgets WHERE id = ?')
    this.#deleteSlot = db.prepare("DELETE FROM budgets WHERE subject = ? AND (period = 'total') = ?")
    this.#spent = db
      .prepare<{ key: string | null; member: string | null; from: number }, Sum<'spent'>>(`
        SELECT ${sumAs('cost', 'spent')} FROM usage_hourly
        WHERE hour >= @from AND ${OWN}`)
      .safeIntegers()
    this.#spentBetween = db
      .prepare<object, Sum<'spent'>>(`
        SELECT ${sumAs('cost', 'spent')} FROM requests
        WHERE id >= @first AND id < @last AND at >= @from AND at < @to AND ${OWN}`)
      .safeIntegers()
    // Running requests count against a limit that is set meanwhile.
    this.#adopt = db
      .prepare<{ id: string; key: string | null; member: string | null }, Money>(`
        UPDATE holds SET budgets = json_insert(coalesce(budgets, '[]'), '$[#]', @id)
        WHERE ${OWN}
        RETURNING amount`)
      .pluck()
      .safeIntegers()
    this.#move = db.prepare('UPDATE budgets SET subject = ? WHERE subject = ?')
    this.#forget = db.prepare('DELETE FROM budgets WHERE subject = ?')
  }

  of(subject: string): LimitRecord[] {
    return this.#reader.of([subject], this.#now()).map(limitRecord)
  }

  /** Within a transaction. */
  change(kind: Budget['of'], subject: string, change: LimitChange): void {
    if ('set' in change) this.#set(kind, subject, change.set)
    else this.#deleteSlot.run(subject, change.drop === 'total' ? 1 : 0)
  }

  /** Within a transaction: deletes all limits of the subject. */
  forget(subject: string): void {
    this.#forget.run(subject)
  }

  /** Within a transaction: moves all limits and their spending to another subject. */
  move(from: string, to: string): void {
    this.#move.run(to, from)
  }

  /**
   * Earlier spending of a key or member counts against a new limit. For a provider key it is unknown, and a session has
   * none when its limit is set.
   */
  #set(kind: Budget['of'], subject: string, input: LimitInput): void {
    const now = this.#now()
    const { amount } = input
    const setting = limitSetting(this.#reader.of([subject], now), input, now)
    if ('raises' in setting) {
      this.#update.run(amount, setting.raises)
      return
    }
    const { replaces, period, zone, periodAt } = setting
    if (replaces !== undefined) this.#delete.run(replaces)
    const id = shortId()
    const of = kind === 'key' ? { key: subject, member: null } : { key: null, member: subject }
    const counts = kind === 'key' || kind === 'member'
    const spent = counts ? storable(this.#spentSince(periodAt, of)) : 0n
    const held = counts ? this.#adopt.all({ id, ...of }).reduce((sum, one) => sum + one, 0n) : 0n
    this.#insert.run({ id, subject, kind, period, zone, amount, periodAt, spent, held })
  }

  #spentSince(at: number, of: { readonly key: string | null; readonly member: string | null }): Money {
    const { hour, before } = spentSince(at)
    const sum = sumOf(this.#spent.get({ ...of, from: hour })!, 'spent')
    if (!before) return sum
    return sum - sumOf(this.#spentBetween.get({ ...of, ...before, from: hour, to: at })!, 'spent')
  }
}
