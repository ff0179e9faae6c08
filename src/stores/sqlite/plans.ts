/** Coding plans of organizations as operators set them. `subscriptions.ts` keeps their use. */
import type { Statement } from 'better-sqlite3'
import type { Actor, PlanState, PlanStore } from '../../core/ports.ts'
import { noPlan, planSetting, planState } from '../rules/plans.ts'
import type { AuditedTransaction } from './audited-transaction.ts'
import type { Sqlite } from './open.ts'
import { planAccount, readSubscription, type SubscriptionRow } from './subscriptions.ts'

/** `PlanStore` over `subscriptions`; a row outlives its plan. */
export class SqlitePlans implements PlanStore {
  readonly #changes: AuditedTransaction
  readonly #read: Statement<[string], SubscriptionRow>
  readonly #begin: Statement
  readonly #update: Statement
  readonly #resetWeek: Statement

  constructor(db: Sqlite, changes: AuditedTransaction) {
    this.#changes = changes
    this.#read = readSubscription(db)
    // What requests hold of an ended plan is released to the next one.
    this.#begin = db.prepare(`
      INSERT INTO subscriptions (org_id, plan, since, overflow, month_at) VALUES (@org, @plan, @now, @overflow, @now)
      ON CONFLICT (org_id) DO UPDATE SET
        plan = excluded.plan, since = excluded.since, overflow = excluded.overflow, month_at = excluded.month_at,
        used = 0, week_at = NULL, premium_used = 0`)
    this.#update = db.prepare('UPDATE subscriptions SET plan = @plan, overflow = @overflow WHERE org_id = @org')
    this.#resetWeek = db.prepare('UPDATE subscriptions SET week_at = NULL, premium_used = 0 WHERE org_id = ?')
  }

  set(organization: string, changes: Parameters<PlanStore['set']>[1], actor: Actor): Promise<PlanState | null> {
    return this.#change(organization, 'plans.set', actor, (org, was) => {
      const { plan, ...setting } = planSetting(was, changes)
      const overflow = setting.overflow ? 1 : 0
      if (was) this.#update.run({ org, plan, overflow })
      else if (plan) this.#begin.run({ org, plan, overflow, now: this.#changes.now() })
    })
  }

  async show(organization: string): Promise<PlanState | null> {
    return this.#state(this.#changes.directory.organization(organization).id)
  }

  async resetWeek(organization: string, actor: Actor): Promise<PlanState> {
    const state = await this.#change(organization, 'plans.reset', actor, (org, was) => {
      if (!was) throw noPlan()
      this.#resetWeek.run(org)
    })
    return state!
  }

  #change(
    organization: string,
    action: string,
    actor: Actor,
    work: (org: string, was: PlanState | null) => void,
  ): Promise<PlanState | null> {
    return this.#changes.run(() => {
      const { id } = this.#changes.directory.organization(organization)
      const was = this.#state(id)
      work(id, was)
      const became = this.#state(id)
      this.#changes.note({ actor, action, organization: id, subject: id, was, became })
      return became
    })
  }

  #state(org: string): PlanState | null {
    const row = this.#read.get(org)
    return planState(row && planAccount(row), this.#changes.now()) ?? null
  }
}
