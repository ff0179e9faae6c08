/** Units of time, and recurring spans: calendar hours, days, weeks and months in a time zone, and billing cycles. */

/** The values of a limit's `period` that recur. */
export const periods = ['hour', 'day', 'week', 'month'] as const
/** A recurring span; a week begins on Monday. */
export type Period = (typeof periods)[number]

/** Unix milliseconds; `end` is exclusive. */
export interface Span {
  readonly start: number
  readonly end: number
}

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS
/** 1970-01-01 was a Thursday; weeks begin on Mondays. */
const DAYS_BEFORE_MONDAY = 3

/** Start of the hour of `at` in UTC, both in Unix milliseconds. */
export const hourOf = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS

/** The span of `period` that contains `at`, in an IANA time zone. Throws a RangeError for an unknown zone. */
export function spanOf(period: Period, zone: string, at: number): Span {
  const wall = at + offsetOf(zone, at)
  if (period === 'hour') {
    const start = at - modulo(wall, HOUR_MS)
    return { start, end: start + HOUR_MS }
  }
  const [first, next] = daysOf(period, Math.floor(wall / DAY_MS))
  return { start: midnight(zone, first), end: midnight(zone, next) }
}

/** Whether `zone` is a time zone that `Intl` supports. */
export function isZone(zone: string): boolean {
  try {
    clockOf(zone)
    return true
  } catch {
    return false
  }
}

/**
 * The month that contains `at`, counted from `anchor` on the same day of each month (the last day of shorter months),
 * UTC. For an `at` before `anchor`, the first month.
 */
export function cycleOf(anchor: number, at: number): Span {
  const from = new Date(anchor)
  const to = new Date(at)
  let months = 12 * (to.getUTCFullYear() - from.getUTCFullYear()) + to.getUTCMonth() - from.getUTCMonth()
  while (months > 0 && monthsAfter(from, months) > at) months--
  months = Math.max(0, months)
  return { start: monthsAfter(from, months), end: monthsAfter(from, months + 1) }
}

/** First day of the period and of the next one, as days since 1970-01-01. */
function daysOf(period: Exclude<Period, 'hour'>, day: number): readonly [number, number] {
  if (period === 'day') return [day, day + 1]
  if (period === 'week') {
    const monday = day - modulo(day + DAYS_BEFORE_MONDAY, 7)
    return [monday, monday + 7]
  }
  const date = new Date(day * DAY_MS)
  const first = (months: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months) / DAY_MS
  return [first(0), first(1)]
}

/** Start of a day: midnight, the first of two, or the moment of the change where a clock change skips midnight. */
function midnight(zone: string, day: number): number {
  const wall = day * DAY_MS
  const candidates = [offsetOf(zone, wall - DAY_MS), offsetOf(zone, wall + DAY_MS)].map(offset => wall - offset)
  const reached = candidates.filter(at => at + offsetOf(zone, at) >= wall)
  return Math.min(...(reached.length > 0 ? reached : candidates))
}

const clocks = new Map<string, Intl.DateTimeFormat>()

function clockOf(zone: string): Intl.DateTimeFormat {
  let clock = clocks.get(zone)
  if (!clock) {
    const two = '2-digit'
    const fields = { year: 'numeric', month: two, day: two, hour: two, minute: two, second: two } as const
    clock = new Intl.DateTimeFormat('en-US', { timeZone: zone, hourCycle: 'h23', calendar: 'gregory', ...fields })
    clocks.set(zone, clock)
  }
  return clock
}

/** Offset of `zone` from UTC, in milliseconds. */
function offsetOf(zone: string, at: number): number {
  if (zone === 'UTC') return 0
  const shown: Record<string, number> = {}
  for (const { type, value } of clockOf(zone).formatToParts(at)) shown[type] = Number(value)
  const { year, month, day, hour, minute, second } = shown
  return Date.UTC(year!, month! - 1, day, hour, minute, second) - Math.floor(at / 1000) * 1000
}

function monthsAfter(from: Date, months: number): number {
  const at = new Date(from)
  at.setUTCDate(1)
  at.setUTCMonth(at.getUTCMonth() + months)
  const lastDay = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 0)).getUTCDate()
  return at.setUTCDate(Math.min(from.getUTCDate(), lastDay))
}

const modulo = (value: number, by: number): number => ((value % by) + by) % by
