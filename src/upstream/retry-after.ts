/** The wait that a provider's error names before a retry (docs/contributing/edge-cases.md#errors E8). */
import { namedWaitMs } from '../lib/named-wait.ts'

const MAX_MS = 24 * 60 * 60 * 1000

/** Milliseconds from `retry-after-ms`, `retry-after` (seconds or HTTP date) or the message; undefined for none. */
export function retryAfterMs(header: (name: string) => string | undefined, message: string): number | undefined {
  const candidates = [Number(header('retry-after-ms') ?? Number.NaN), seconds(header('retry-after'))]
  const wait = candidates.find(ms => Number.isFinite(ms) && ms > 0)
  return wait === undefined ? namedWaitMs(message) : Math.min(Math.ceil(wait), MAX_MS)
}

function seconds(value: string | undefined): number {
  if (value === undefined) return Number.NaN
  const plain = Number(value) * 1000
  return Number.isNaN(plain) ? Date.parse(value) - Date.now() : plain
}
