/** Use and holds of coding plans' allowances: one row each, read and written once per transaction. */
import type { Statement } from 'better-sqlite3'
import type { Money } from '../../core/money.ts'
import type { Allowance, Exhausted, Funds } from '../../core/ports.ts'
import {
  bookedAt,
  currentPlan,
  exhaustedPlan,
  fundsOf,
  type PlanAccount,
  type PlanRow,
  planAccount,
  withUse,
} from '../rules/plans.ts'
import type { PlanAccounts } from '../rules/reservations.ts'
import type { Sqlite } from './open.ts'
import type { Participant, Writer } from './writer.ts'

type SubscriptionRow = PlanRow & { readonly org_id: string }
/** A plan within the current transaction. */
interface State {
  account: PlanAccount
  changed: boolean
}

/** Nano-USD by organization. `reserve` and `release` run within a transaction of the writer. */
export class Subscriptions implements PlanAccounts, Participant {
  readonly #read: Statement<[string], SubscriptionRow>
  readonly #write: Statement
  readonly #states = new Map<string, State | undefined>()

  constructor(db: Sqlite, writer: Writer) {
    this.#read = db.prepare<[string], SubscriptionRow>('SELECT * FROM subscriptions WHERE org_id = ?').safeIntegers()
    this.#write = db.prepare(`
      UPDATE subscriptions SET month_at = ?, used = ?, held = ?, week_at = ?, premium_used = ?, premium_held = ?
      WHERE org_id = ?`)
    writer.join(this)
  }

  reserve(orgId: string, allowance: Allowance, amount: Money, now: number): Funds | Exhausted {
    const state = this.#current(orgId, now)
    const exhausted = exhaustedPlan(state?.account, allowance, amount, now)
    if (exhausted) return exhausted
    const funds = fundsOf(allowance)
    this.#change(state, funds, amount, 0n, now)
    return funds
  }

  release(orgId: string, funds: Funds, held: Money, cost: Money, now: number): number {
    const state = this.#current(orgId, now)
    this.#change(state, funds, -held, cost, now)
    return bookedAt(state?.account, now)
  }

  beforeCommit(): void {
    for (const [orgId, state] of this.#states) {
      if (!state?.changed) continue
      const { monthAt, used, held, weekAt, premiumUsed, premiumHeld } = state.account
      this.#write.run(monthAt, used, held, weekAt ?? null, premiumUsed, premiumHeld, orgId)
    }
    this.#states.clear()
  }

  undone(): void {
    this.#states.clear()
  }

  #change(state: State | undefined, funds: Funds, held: Money, cost: Money, now: number): void {
    if (!state) return
    state.changed = true
    state.account = withUse(state.account, funds, held, cost, now)
  }

  #current(orgId: string, now: number): State | undefined {
    let state = this.#states.get(orgId)
    if (!state && !this.#states.has(orgId)) {
      const row = this.#read.get(orgId)
      state = row && { account: planAccount(row), changed: false }
      this.#states.set(orgId, state)
    }
    if (state) state.account = currentPlan(state.account, now)
    return state
  }
}
