/** Coding plans of organizations as operators set them. The ledger keeps their use. */
import type { Actor, PlanState, PlanStore } from '../../core/ports.ts'
import { noPlan, type PlanRow, planAccount, planSetting, planState } from '../rules/plans.ts'
import type { AuditedTransaction } from './audit.ts'
import { first, type Sql } from './sql.ts'

/** Begins a plan. Holds on the ended plan are released to the next one. */
const BEGIN = `
  INSERT INTO subscriptions (org_id, plan, overflow, since, month_at) VALUES ($1, $2, $3, $4, $4)
  ON CONFLICT (org_id) DO UPDATE SET
    plan = excluded.plan, since = excluded.since, overflow = excluded.overflow, month_at = excluded.month_at,
    used = 0, week_at = NULL, premium_used = 0`

/** `PlanStore` over `subscriptions`; a row outlives its plan. */
export class SqlPlans implements PlanStore {
  readonly #changes: AuditedTransaction

  constructor(changes: AuditedTransaction) {
    this.#changes = changes
  }

  set(organization: string, changes: Parameters<PlanStore['set']>[1], actor: Actor): Promise<PlanState | null> {
    return this.#change(organization, 'plans.set', actor, async (sql, org, was) => {
      const { plan, overflow } = planSetting(was, changes)
      const update = 'UPDATE subscriptions SET plan = $2, overflow = $3 WHERE org_id = $1'
      if (was) await sql.query(update, [org, plan, overflow])
      else if (plan) await sql.query(BEGIN, [org, plan, overflow, this.#changes.now()])
    })
  }

  show(organization: string): Promise<PlanState | null> {
    const { sql, names } = this.#changes
    return this.#changes.read(async () => this.#state(sql, (await names.organization(organization)).id))
  }

  async resetWeek(organization: string, actor: Actor): Promise<PlanState> {
    const state = await this.#change(organization, 'plans.reset', actor, async (sql, org, was) => {
      if (!was) throw noPlan()
      await sql.query('UPDATE subscriptions SET week_at = NULL, premium_used = 0 WHERE org_id = $1', [org])
    })
    return state!
  }

  #change(
    organization: string,
    action: string,
    actor: Actor,
    work: (sql: Sql, org: string, was: PlanState | null) => Promise<void>,
  ): Promise<PlanState | null> {
    return this.#changes.run(async ({ sql, names, note }) => {
      const { id } = await names.organization(organization)
      const was = await this.#state(sql, id)
      await work(sql, id, was)
      const became = await this.#state(sql, id)
      await note({ actor, action, organization: id, subject: id, was, became })
      return became
    })
  }

  async #state(sql: Sql, org: string): Promise<PlanState | null> {
    return (await readPlan(sql, org, this.#changes.now())) ?? null
  }
}

/** Returns the plan of an organization with its use; undefined where it has none. */
export async function readPlan(sql: Sql, org: string, now: number): Promise<PlanState | undefined> {
  const row = await first<PlanRow>(sql, 'SELECT * FROM subscriptions WHERE org_id = $1', [org])
  if (!row) return undefined
  return planState(planAccount(row), now)
}
