/** Limits of what may be spent, as they are set. What is spent of them is kept by `budgets.ts`. */
import type { Statement } from 'better-sqlite3'
import { errors } from '../../core/error.ts'
import type { Money } from '../../core/money.ts'
import type { Budget, LimitChange, LimitInput, LimitRecord } from '../../core/ports.ts'
import { shortId, stampOf } from '../../lib/id.ts'
import { isZone, spanOf } from '../../lib/period.ts'
import { BudgetReader } from './budgets.ts'
import type { Sqlite } from './open.ts'
import { hourOf } from './requests.ts'
import { type Sum, storable, sumAs, sumOf } from './sums.ts'

/** An id is made with its request; clocks are set meanwhile. All rows between are read while nobody else writes. */
const SLACK_MS = 60_000

/** The key and those that it succeeds, or all that a member made. */
const OWN = `key_id IN (
  WITH RECURSIVE own (id) AS (
    SELECT id FROM keys WHERE id = @key OR created_by = @member
    UNION SELECT succeeds FROM keys JOIN own USING (id) WHERE succeeds IS NOT NULL
  )
  SELECT id FROM own
)`

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
    // Requests that run count against a limit that is set meanwhile.
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
    return this.#reader.of([subject], this.#now()).map(({ period, limit, spent, zone, resetsAt }) => ({
      period,
      limit,
      spent,
      zone,
      resetsAt: resetsAt === undefined ? null : new Date(resetsAt).toISOString(),
    }))
  }

  /** Within a transaction. */
  change(kind: Budget['of'], subject: string, change: LimitChange): void {
    if ('set' in change) this.#set(kind, subject, change.set)
    else this.#deleteSlot.run(subject, change.drop === 'total' ? 1 : 0)
  }

  /** Within a transaction: the subject has no limits any more. */
  forget(subject: string): void {
    this.#forget.run(subject)
  }

  /** Within a transaction: all limits, with what is spent of them, are another's from now on. */
  move(from: string, to: string): void {
    this.#move.run(to, from)
  }

  /**
   * One of the same period and zone is only raised or lowered. What a key or a member has spent before a limit is set
   * counts against it; of a provider key only what is spent from then on does.
   */
  #set(kind: Budget['of'], subject: string, { amount, zone = 'UTC', ...input }: LimitInput): void {
    const period: Budget['period'] = input.period ?? 'total'
    if (!isZone(zone))
      throw errors.invalidParameters(`"${zone}" is no IANA time zone, such as "Europe/Berlin".`, 'zone')
    const now = this.#now()
    const [key, member] = [kind === 'key' ? subject : null, kind === 'member' ? subject : null]
    const old = this.#reader.of([subject], now).find(one => (one.period === 'total') === (period === 'total'))
    if (old && old.period === period && old.zone === zone) {
      this.#update.run(amount, old.id)
      return
    }
    if (old) this.#delete.run(old.id)
    const id = shortId()
    const periodAt = period === 'total' ? 0 : spanOf(period, zone, now).start
    const spent = storable(this.#spentSince(periodAt, { key, member }))
    const held = this.#adopt.all({ id, key, member }).reduce((sum, one) => sum + one, 0n)
    this.#insert.run({ id, subject, kind, period, zone, amount, periodAt, spent, held })
  }

  /**
   * Sums are of hours as UTC has them: of one in the middle of which a period begins, what the rows of requests tell of
   * the time before is left out. Rows that were dropped tell nothing, so that it may be that hour's spending too much.
   */
  #spentSince(at: number, of: { readonly key: string | null; readonly member: string | null }): Money {
    const hour = hourOf(at)
    const sum = sumOf(this.#spent.get({ ...of, from: hour })!, 'spent')
    if (hour === at) return sum
    const [first, last] = [stampOf(hour - SLACK_MS), stampOf(at + SLACK_MS)]
    return sum - sumOf(this.#spentBetween.get({ ...of, first, last, from: hour, to: at })!, 'spent')
  }
}
