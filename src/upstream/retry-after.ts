/** The wait that a provider's error names before a retry (docs/edge-cases.md#errors E8). */

const MAX_MS = 24 * 60 * 60 * 1000
/** A spent account may name the first day of the next month. */
const MAX_DATE_MS = 32 * MAX_MS

/** Milliseconds from `retry-after-ms`, `retry-after` (seconds or HTTP date) or the message; undefined for none. */
export function retryAfterMs(header: (name: string) => string | undefined, message: string): number | undefined {
  const candidates = [
    Number(header('retry-after-ms') ?? Number.NaN),
    seconds(header('retry-after')),
    Number(/(?:retry|try again) (?:after|in) (\d+(?:\.\d+)?) ?s/i.exec(message)?.[1] ?? Number.NaN) * 1000,
  ]
  const wait = candidates.find(ms => Number.isFinite(ms) && ms > 0)
  return wait === undefined ? untilDate(message) : Math.min(Math.ceil(wait), MAX_MS)
}

const DATE = /regain access on (\d{4}-\d{2}-\d{2})(?: at (\d{2}:\d{2}))?/i

/** Milliseconds until the date in UTC from which an account may be used again. */
function untilDate(message: string): number | undefined {
  const [, day, time = '00:00'] = DATE.exec(message) ?? []
  const wait = day === undefined ? Number.NaN : Date.parse(`${day}T${time}Z`) - Date.now()
  return wait > 0 ? Math.min(wait, MAX_DATE_MS) : undefined
}

function seconds(value: string | undefined): number {
  if (value === undefined) return Number.NaN
  const plain = Number(value) * 1000
  return Number.isNaN(plain) ? Date.parse(value) - Date.now() : plain
}
