/** Use and holds of a coding plan's allowance, and the start of its months and weeks. */

import type { Money } from '../../core/money.ts'
import type { PlanName } from '../../core/plan.ts'
import type { Allowance, Exhausted, Funds, PlanState, PlanStore } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import { cycleOf, DAY_MS } from '../../lib/period.ts'
import { roomIn } from './budgets.ts'

const WEEK_MS = 7 * DAY_MS

/** An organization's plan with its use and holds. */
export interface PlanAccount {
  /** Null when it has ended; releases of its holds still apply. */
  readonly plan: PlanName | null
  /** Unix milliseconds, like all times here. */
  readonly since: number
  readonly overflow: boolean
  readonly monthAt: number
  readonly used: Money
  readonly held: Money
  /** Undefined while no week runs. */
  readonly weekAt: number | undefined
  readonly premiumUsed: Money
  readonly premiumHeld: Money
}

/** A row of `subscriptions`; a null `plan` has ended. */
export interface PlanRow {
  readonly plan: PlanName | null
  readonly since: bigint
  readonly overflow: bigint | boolean
  readonly month_at: bigint
  readonly used: bigint
  readonly held: bigint
  readonly week_at: bigint | null
  readonly premium_used: bigint
  readonly premium_held: bigint
}

/** Returns the account of a row. */
export const planAccount = (row: PlanRow): PlanAccount => ({
  plan: row.plan,
  since: Number(row.since),
  overflow: Boolean(row.overflow),
  monthAt: Number(row.month_at),
  used: row.used,
  held: row.held,
  weekAt: row.week_at === null ? undefined : Number(row.week_at),
  premiumUsed: row.premium_used,
  premiumHeld: row.premium_held,
})

/** A month begins at its anchor, a week with the first premium charge after the previous week. */
export function currentPlan(account: PlanAccount, now: number): PlanAccount {
  const { start } = cycleOf(account.since, now)
  const end = weekEnd(account)
  const month = account.monthAt < start ? { monthAt: start, used: 0n } : undefined
  const week = end !== undefined && now >= end ? { weekAt: undefined, premiumUsed: 0n } : undefined
  return month || week ? { ...account, ...month, ...week } : account
}

/** Why `amount` cannot be held of a current account. Free requests need no allowance. */
export function exhaustedPlan(
  account: PlanAccount | undefined,
  { monthly, premium }: Allowance,
  amount: Money,
  now: number,
): Exhausted | undefined {
  if (amount <= 0n) return undefined
  if (!account) return { exhausted: 'plan', period: 'month', resetsAt: undefined, room: 0n, held: 0n }
  if (account.used + account.held + amount > monthly) {
    const ofMonth = roomIn(monthly - account.used, account.held)
    return { exhausted: 'plan', period: 'month', resetsAt: cycleOf(account.since, now).end, ...ofMonth }
  }
  if (premium === undefined || account.premiumUsed + account.premiumHeld + amount <= premium) return undefined
  const ofWeek = roomIn(premium - account.premiumUsed, account.premiumHeld)
  return { exhausted: 'premium', period: 'week', resetsAt: weekEnd(account), ...ofWeek }
}

/** The account that a charge against the allowance is booked to. */
export const fundsOf = ({ premium }: Allowance): Funds => (premium === undefined ? 'plan' : 'premium')

/** A current account with these amounts added to holds and use. */
export function withUse(account: PlanAccount, funds: Funds, held: Money, cost: Money, now: number): PlanAccount {
  const isPremium = funds === 'premium'
  return {
    plan: account.plan,
    since: account.since,
    overflow: account.overflow,
    monthAt: account.monthAt,
    used: account.used + cost,
    held: account.held + held,
    weekAt: account.weekAt ?? (isPremium && cost > 0n ? now : undefined),
    premiumUsed: isPremium ? account.premiumUsed + cost : account.premiumUsed,
    premiumHeld: isPremium ? account.premiumHeld + held : account.premiumHeld,
  }
}

/** Booking time of a charge: after a clock was set back, the start of the month in which it counts. */
export const bookedAt = (account: PlanAccount | undefined, now: number): number => Math.max(now, account?.monthAt ?? 0)

/** Undefined when the plan has ended. */
export function planState(account: PlanAccount | undefined, now: number): PlanState | undefined {
  if (!account?.plan) return undefined
  const { plan, since, overflow } = account
  const { used, premiumUsed, weekAt } = currentPlan(account, now)
  return {
    plan,
    since,
    overflow,
    used,
    renewsAt: cycleOf(since, now).end,
    premiumUsed,
    premiumResetsAt: weekEnd({ weekAt }),
  }
}

/** The 400 for an organization without a plan to change. */
export const noPlan = () =>
  errors.badRequest('The organization has no plan; set one with `gatewayctl plans set --plan`.')

/** The plan after a change. Throws a 400 when there is none to change. */
export function planSetting(
  was: PlanState | null,
  changes: Parameters<PlanStore['set']>[1],
): { readonly plan: PlanName | null; readonly overflow: boolean } {
  if (changes.plan === undefined && !was) throw noPlan()
  const plan = changes.plan === undefined ? (was?.plan ?? null) : changes.plan
  return { plan, overflow: changes.overflow ?? was?.overflow ?? false }
}

const weekEnd = ({ weekAt }: Pick<PlanAccount, 'weekAt'>): number | undefined =>
  weekAt === undefined ? undefined : weekAt + WEEK_MS
