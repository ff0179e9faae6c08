/** What is used and held of the allowances of coding plans: one row each, read and written once per transaction. */
import type { Statement } from 'better-sqlite3'
import type { Money } from '../../core/money.ts'
import type { PlanName } from '../../core/plan.ts'
import type { Allowance, Exhausted, Funds, PlanState } from '../../core/ports.ts'
import { cycleOf } from '../../lib/period.ts'
import type { Sqlite } from './open.ts'
import type { Participant, Writer } from './writer.ts'

const WEEK_MS = 7 * 86_400_000

export interface SubscriptionRow {
  org_id: string
  plan: PlanName | null
  since: bigint
  overflow: bigint
  month_at: bigint
  used: bigint
  held: bigint
  week_at: bigint | null
  premium_used: bigint
  premium_held: bigint
}
interface State {
  readonly row: SubscriptionRow
  changed: boolean
}

export class Subscriptions implements Participant {
  readonly #read: Statement<[string], SubscriptionRow>
  readonly #write: Statement
  readonly #states = new Map<string, State | undefined>()

  constructor(db: Sqlite, writer: Writer) {
    this.#read = readSubscription(db)
    this.#write = db.prepare(`
      UPDATE subscriptions SET month_at = ?, used = ?, held = ?, week_at = ?, premium_used = ?, premium_held = ?
      WHERE org_id = ?`)
    writer.join(this)
  }

  /** Call within a transaction. What is free needs no room. */
  reserve(orgId: string, { monthly, premium }: Allowance, amount: Money, now: number): Funds | Exhausted {
    const state = this.#current(orgId, now)
    const full = amount > 0n ? exhausted(state?.row, monthly, premium, amount, now) : undefined
    if (full) return full
    const funds = premium === undefined ? 'plan' : 'premium'
    this.#change(state, funds, amount, 0n, now)
    return funds
  }

  /**
   * Call within a transaction: gives back what was held, and takes what it cost. Returns when that was: where a clock
   * was put back, at the begin of the month that it counts in.
   */
  release(orgId: string, funds: Funds, held: Money, cost: Money, now: number): number {
    const state = this.#current(orgId, now)
    this.#change(state, funds, -held, cost, now)
    return Math.max(now, Number(state?.row.month_at ?? 0n))
  }

  beforeCommit(): void {
    for (const [orgId, state] of this.#states) {
      if (!state?.changed) continue
      const { month_at, used, held, week_at, premium_used, premium_held } = state.row
      this.#write.run(month_at, used, held, week_at, premium_used, premium_held, orgId)
    }
    this.#states.clear()
  }

  undone(): void {
    this.#states.clear()
  }

  #change(state: State | undefined, funds: Funds, held: Money, cost: Money, now: number): void {
    if (!state) return
    const { row } = state
    state.changed = true
    row.held += held
    row.used += cost
    if (funds !== 'premium') return
    row.premium_held += held
    row.premium_used += cost
    if (cost > 0n) row.week_at ??= BigInt(now)
  }

  #current(orgId: string, now: number): State | undefined {
    let state = this.#states.get(orgId)
    if (!state && !this.#states.has(orgId)) {
      const row = this.#read.get(orgId)
      state = row && { row, changed: false }
      this.#states.set(orgId, state)
    }
    if (state) roll(state.row, now)
    return state
  }
}

export const readSubscription = (db: Sqlite): Statement<[string], SubscriptionRow> =>
  db.prepare<[string], SubscriptionRow>('SELECT * FROM subscriptions WHERE org_id = ?').safeIntegers()

/** A row as it is at this time; undefined when the plan has ended. */
export function planState(row: SubscriptionRow | undefined, now: number): PlanState | undefined {
  if (!row?.plan) return undefined
  roll(row, now)
  const { plan, since, overflow, used, premium_used: premiumUsed } = row
  return {
    plan,
    since: Number(since),
    overflow: overflow !== 0n,
    used,
    renewsAt: cycleOf(Number(since), now).end,
    premiumUsed,
    premiumResetsAt: weekEnd(row),
  }
}

function exhausted(
  row: SubscriptionRow | undefined,
  monthly: Money,
  premium: Money | undefined,
  amount: Money,
  now: number,
): Exhausted | undefined {
  if (!row) return { exhausted: 'plan', period: 'month', resetsAt: undefined, room: 0n }
  const ofMonth = left(monthly, row.used + row.held)
  if (amount > ofMonth) {
    return { exhausted: 'plan', period: 'month', resetsAt: cycleOf(Number(row.since), now).end, room: ofMonth }
  }
  if (premium === undefined) return undefined
  const ofWeek = left(premium, row.premium_used + row.premium_held)
  return amount > ofWeek ? { exhausted: 'premium', period: 'week', resetsAt: weekEnd(row), room: ofWeek } : undefined
}

const left = (granted: Money, taken: Money): Money => (granted > taken ? granted - taken : 0n)

/** A month begins where it does, a week with the first charge for a premium model after the last one has ended. */
function roll(row: SubscriptionRow, now: number): void {
  const { start } = cycleOf(Number(row.since), now)
  if (row.month_at < start) {
    row.month_at = BigInt(start)
    row.used = 0n
  }
  const end = weekEnd(row)
  if (end !== undefined && now >= end) {
    row.week_at = null
    row.premium_used = 0n
  }
}

const weekEnd = ({ week_at }: SubscriptionRow): number | undefined =>
  week_at === null ? undefined : Number(week_at) + WEEK_MS
