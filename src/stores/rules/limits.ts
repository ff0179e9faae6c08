/** Rules for setting a limit, and for counting earlier spending against it. */

import type { Budget, BudgetState, LimitInput, LimitRecord } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import { stampOf } from '../../lib/id.ts'
import { hourOf, isZone, spanOf } from '../../lib/period.ts'

/** Ids carry the time of their request, but clocks may be adjusted: reads this much beyond, within a transaction. */
const SLACK_MS = 60_000

/** A limit of the same period and zone is raised or lowered; any other replaces the old one. */
type LimitSetting =
  | { readonly raises: string }
  | {
      readonly replaces: string | undefined
      readonly period: Budget['period']
      readonly zone: string
      /** Start of its period, Unix milliseconds: spending since then counts. */
      readonly periodAt: number
    }

/** `known`: limits of the same subject. Throws a 400 for an unknown zone. */
export function limitSetting(
  known: readonly BudgetState[],
  { zone = 'UTC', ...input }: LimitInput,
  now: number,
): LimitSetting {
  if (!isZone(zone)) {
    throw errors.invalidParameters(`"${zone}" is not an IANA time zone such as "Europe/Berlin".`, 'zone')
  }
  const period: Budget['period'] = input.period ?? 'total'
  const old = known.find(one => (one.period === 'total') === (period === 'total'))
  if (old && old.period === period && old.zone === zone) return { raises: old.id }
  return { replaces: old?.id, period, zone, periodAt: period === 'total' ? 0 : spanOf(period, zone, now).start }
}

/**
 * How to find the spending since `at`. Sums are per UTC hour, from `hour` on; when a period begins within an hour, the
 * rows between `hour` and `at` (ids from `first` to before `last`) are subtracted. Deleted rows cannot be subtracted,
 * so that spending may count up to one hour too much.
 */
interface SpentSince {
  readonly hour: number
  readonly before: { readonly first: string; readonly last: string } | undefined
}
/** `at`: start of a period, Unix milliseconds. */
export function spentSince(at: number): SpentSince {
  const hour = hourOf(at)
  if (hour === at) return { hour, before: undefined }
  return { hour, before: { first: stampOf(hour - SLACK_MS), last: stampOf(at + SLACK_MS) } }
}

/** A limit as operators see it; `resetsAt` is null for a total limit. */
export const limitRecord = ({
  period,
  limit,
  spent,
  zone,
  resetsAt,
  onLimit = 'refuse',
}: BudgetState): LimitRecord => ({
  period,
  limit,
  spent,
  zone,
  resetsAt: resetsAt === undefined ? null : new Date(resetsAt).toISOString(),
  ...(onLimit !== 'refuse' && { on_limit: onLimit }),
})
