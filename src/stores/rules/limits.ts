/** What becomes of limits when one is set, and what was spent before counts against it. */
import { errors } from '../../core/error.ts'
import type { Budget, BudgetState, LimitInput, LimitRecord } from '../../core/ports.ts'
import { stampOf } from '../../lib/id.ts'
import { isZone, spanOf } from '../../lib/period.ts'
import { hourOf } from './hours.ts'

/** An id is made with its request; clocks are set meanwhile. All rows between are read within a transaction. */
const SLACK_MS = 60_000

/** A limit of the same period and zone is only raised or lowered; another one takes the place of what was there. */
export type LimitSetting =
  | { readonly raises: string }
  | {
      readonly replaces: string | undefined
      readonly period: Budget['period']
      readonly zone: string
      /** Start of its period, Unix milliseconds: what was spent since then counts. */
      readonly periodAt: number
    }

/** `known` are the limits of the same subject. Throws a 400 for a zone that is none. */
export function limitSetting(
  known: readonly BudgetState[],
  { zone = 'UTC', ...input }: LimitInput,
  now: number,
): LimitSetting {
  if (!isZone(zone)) {
    throw errors.invalidParameters(`"${zone}" is no IANA time zone, such as "Europe/Berlin".`, 'zone')
  }
  const period: Budget['period'] = input.period ?? 'total'
  const old = known.find(one => (one.period === 'total') === (period === 'total'))
  if (old && old.period === period && old.zone === zone) return { raises: old.id }
  return { replaces: old?.id, period, zone, periodAt: period === 'total' ? 0 : spanOf(period, zone, now).start }
}

/**
 * How what was spent since `at` is found: sums are of hours as UTC has them, from `hour` on; where a period begins in the
 * middle of one, what requests came to between `hour` and `at` is left out. Ids of their rows are from `first` to before
 * `last`. Rows that were dropped tell nothing, so that it may be that hour's spending too much.
 */
export interface SpentSince {
  readonly hour: number
  readonly before: { readonly first: string; readonly last: string } | undefined
}
export function spentSince(at: number): SpentSince {
  const hour = hourOf(at)
  if (hour === at) return { hour, before: undefined }
  return { hour, before: { first: stampOf(hour - SLACK_MS), last: stampOf(at + SLACK_MS) } }
}

export const limitRecord = ({ period, limit, spent, zone, resetsAt }: BudgetState): LimitRecord => ({
  period,
  limit,
  spent,
  zone,
  resetsAt: resetsAt === undefined ? null : new Date(resetsAt).toISOString(),
})
