/** Spending and holds of a limit, and the start of its periods. */
import type { Money } from '../../core/money.ts'
import type { Budget, BudgetState, Exhausted } from '../../core/ports.ts'
import { type Period, type Span, spanOf } from '../../lib/period.ts'

/** A limit with its spending and holds. */
export interface BudgetAccount extends Budget {
  /** Start of the period of `spent`, Unix milliseconds; 0 for a total limit. */
  readonly periodAt: number
  readonly spent: Money
  readonly held: Money
}

/** The account as of `now`: a new period starts at zero; current holds will be charged in it. */
export function currentBudget(account: BudgetAccount, now: number): BudgetAccount {
  if (account.period === 'total') return account
  const { start } = current(account.period, account.zone, now)
  return account.periodAt >= start ? account : { ...account, periodAt: start, spent: 0n }
}

/** Why `amount` cannot be held of a current account. A reached limit also refuses free requests. */
export function exhaustedBudget(account: BudgetAccount, amount: Money, now: number): Exhausted | undefined {
  const { id, of, period, limit, spent, held } = account
  if (spent < limit && spent + held + amount <= limit) return undefined
  return { exhausted: of, limitId: id, period, resetsAt: periodEnd(account, now), ...roomIn(limit - spent, held) }
}

/** Returns the amount that is free now, and the amount that holds block; both are at least 0. */
export function roomIn(left: Money, held: Money): Pick<Exhausted, 'room' | 'held'> {
  const most = left > 0n ? left : 0n
  const room = most > held ? most - held : 0n
  return { room, held: most - room }
}

/** A current account with these amounts added to holds and spending. */
export const withSpending = (account: BudgetAccount, held: Money, cost: Money): BudgetAccount => ({
  id: account.id,
  of: account.of,
  limit: account.limit,
  period: account.period,
  zone: account.zone,
  periodAt: account.periodAt,
  spent: account.spent + cost,
  held: account.held + held,
})

/** A limit as of `now`, for clients and operators; `resetsAt` is undefined for a total limit. */
export function budgetState(account: BudgetAccount, now: number): BudgetState {
  const { id, of, limit, period, zone, onLimit, spent, held } = currentBudget(account, now)
  return { id, of, limit, period, zone, onLimit, spent, held, resetsAt: periodEnd(account, now) }
}

/** A limit without its spending. */
export const budgetOf = ({ id, of, limit, period, zone, onLimit }: Budget): Budget => {
  return { id, of, limit, period, zone, onLimit }
}

/** When the period of `now` ends, Unix milliseconds; undefined for a total limit. */
export const periodEnd = ({ period, zone }: Budget, now: number): number | undefined =>
  period === 'total' ? undefined : current(period, zone, now).end

const spans = new Map<string, Span>()

/** The current span; computed once per period and zone. */
function current(period: Period, zone: string, now: number): Span {
  const key = `${period} ${zone}`
  let span = spans.get(key)
  if (!span || now < span.start || now >= span.end) {
    span = spanOf(period, zone, now)
    spans.set(key, span)
  }
  return span
}
