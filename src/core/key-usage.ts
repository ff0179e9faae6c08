/** Usage and limits of a key. */
import type { Money } from './money.ts'
import type { BudgetState, KeyStatus } from './ports.ts'

/** Spending of a key and its own limits. */
interface KeyUsage {
  readonly usage: Money
  /** The key's own limit of all time, and its recurring one. */
  readonly total: BudgetState | undefined
  readonly recurring: BudgetState | undefined
}

/** Reads the own part of a status, which also lists the limits of its project, member and organization. */
export function keyUsage({ spent, budgets }: KeyStatus): KeyUsage {
  const own = budgets.filter(({ of }) => of === 'key')
  const total = own.find(({ period }) => period === 'total')
  const recurring = own.find(({ period }) => period !== 'total')
  // A key that succeeds another one has its limit, with what was spent of it.
  return { usage: total && total.spent > spent ? total.spent : spent, total, recurring }
}
