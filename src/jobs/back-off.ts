/** When a job, or a callback, is tried next. */
import type { JobOptions } from './context.ts'

/** Gaps grow after this time of a job. */
const STEADY_MS = 120_000
const GROWTH = 1.3
const JITTER = 0.1
const FAILURE = { first: 10_000, most: 300_000 }
const MAX_RETRY_AFTER_MS = 300_000
const MAX_CALLBACK_MS = 3_600_000

const jittered = (ms: number, chance: number): number => Math.round(ms * (1 - JITTER + 2 * JITTER * chance))

/** After an answer that is not the end, of a job that has run for `ageMs`. Never less than `poll`. */
export function pollGap(
  { poll, poll_max }: JobOptions,
  ageMs: number,
  afterMs: number | undefined,
  chance: number,
): number {
  const steps = Math.max(0, (ageMs - STEADY_MS) / poll_max)
  const gap = Math.min(poll_max, poll * GROWTH ** Math.min(steps, 100))
  return Math.max(poll, jittered(Math.max(gap, poll), chance), Math.min(afterMs ?? 0, MAX_RETRY_AFTER_MS))
}

/** After so many failures in a row. `retryAfterMs`: the least wait, as the provider's last answer has it. */
export function failureGap(failures: number, retryAfterMs: number | undefined, chance: number): number {
  const gap = Math.min(FAILURE.most, FAILURE.first * 2 ** Math.min(failures - 1, 20))
  return Math.max(jittered(gap, chance), Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS))
}

/** After the `attempt`th callback, from 1. */
export const callbackGap = (first: number, attempt: number, chance: number): number =>
  Math.min(MAX_CALLBACK_MS, jittered(first * 2 ** Math.min(attempt - 1, 30), chance))
