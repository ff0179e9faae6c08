/** Reads spending limits. The ledger keeps their spending. */
import type { Budget, BudgetState } from '../../core/ports.ts'
import { onLimitOf } from '../../limits/kinds.ts'
import { type BudgetAccount, budgetState } from '../rules/budgets.ts'
import type { Sql } from './sql.ts'

/** A limit with its spending, as it is stored. */
export interface BudgetRow {
  id: string
  kind: Budget['of']
  period: Budget['period']
  zone: string
  amount: bigint
  period_at: bigint
  spent: bigint
  held: bigint
  /** Only where it is selected. */
  on_limit?: string | null
}

const LIMITS = `
  SELECT id, kind, period, zone, amount, period_at, spent, held, on_limit FROM budgets
  WHERE subject IN ($1, $2, $3, $4) ORDER BY kind DESC, period = 'total' DESC`

/** Returns the limits of up to four subjects: a session's first, then a project's, a member's, and a key's. */
export async function readBudgets(
  sql: Sql,
  [one = null, two = null, three = null, four = null]: readonly (string | null)[],
  now: number,
): Promise<BudgetState[]> {
  const rows = await sql.query<BudgetRow>(LIMITS, [one, two, three, four])
  return rows.map(row => budgetState(accountOf(row), now))
}

/** The account of a row. */
export const accountOf = (row: BudgetRow): BudgetAccount => ({
  id: row.id,
  of: row.kind,
  limit: row.amount,
  period: row.period,
  zone: row.zone,
  periodAt: Number(row.period_at),
  spent: row.spent,
  held: row.held,
  onLimit: row.on_limit == null ? undefined : onLimitOf(row.on_limit),
})
