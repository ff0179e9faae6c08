/** The wait before a retry that the words of an error name. */

const MAX_WAIT_MS = 24 * 60 * 60 * 1000
/** A spent account may name the first day of the next month. */
const MAX_DATE_MS = 32 * MAX_WAIT_MS

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const SPAN = /(?:retry|try again|reset) (?:after|in) (?=\d)/i
/** One part of `34.07s`, `9m38.016s`, `5 minutes`, `842ms`. */
const PART = /(\d+(?:\.\d+)?) ?(ms|s|m|h|d)(?:ecs?|econds?|ins?|inutes?|rs?|ours?|ays?)?(?![a-z]) ?/iy
/** `on 2026-12-01 at 00:00`, `at 2026-12-01T00:00:00Z`, `将在 2026-12-01 00:00:00 重置`. */
const DATE =
  /(?:\b(?:on|at|until|after|by)|[\u5728\u81f3\u4e8e])\s?(\d{4}-\d{2}-\d{2})(?:(?:T| at | )(\d{2}:\d{2}(?::\d{2})?))?/i
/** `on December 1, 2026`. */
const LONG_DATE = /\b(?:on|at|until|after|by) ([A-Z][a-z]{2,8} \d{1,2}),? (\d{4})/

/** Milliseconds, of a span of at most a day or until a date in UTC; undefined for none, and for what has passed. */
export function namedWaitMs(message: string): number | undefined {
  const span = spanMs(message)
  if (span > 0) return Math.min(Math.ceil(span), MAX_WAIT_MS)
  const wait = dateIn(message) - Date.now()
  return wait > 0 ? Math.min(wait, MAX_DATE_MS) : undefined
}

function spanMs(message: string): number {
  const start = SPAN.exec(message)
  if (!start) return 0
  PART.lastIndex = start.index + start[0].length
  let total = 0
  for (let part = PART.exec(message); part; part = PART.exec(message)) {
    total += Number(part[1]) * UNIT_MS[part[2]!.toLowerCase()]!
  }
  return total
}

/** Unix milliseconds; NaN for none. */
function dateIn(message: string): number {
  const [, day, time = '00:00'] = DATE.exec(message) ?? []
  if (day !== undefined) return Date.parse(`${day}T${time}Z`)
  const [, date, year] = LONG_DATE.exec(message) ?? []
  return date === undefined ? Number.NaN : Date.parse(`${date}, ${year} UTC`)
}
