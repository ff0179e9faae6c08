/** When a job, or a callback, is tried next, and what ends a job whose polls fail. Decides from values only. */

import type { Job, JobError } from '../core/ports.ts'
import type { GatewayError } from '../lib/error.ts'
import { redactText } from '../secrets/redact.ts'
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

/** Failed polls in a row that end a job. */
export const MAX_FAILURES = 5
/** After this time a 404 means that the provider has no such job. */
const UNKNOWN_MS = 60_000
const MAX_UNKNOWN = 3
const MAX_REASON_CHARACTERS = 500

/** The next poll, and how many have failed in a row by now; or what the job fails with. */
type AfterFailure = { readonly nextAt: number; readonly failures: number } | { readonly error: JobError }

/** `chance` is random, from 0 to 1. Times are Unix milliseconds. */
export function afterFailure(
  job: Pick<Job, 'createdAt' | 'deadlineAt' | 'failures'>,
  error: GatewayError,
  options: JobOptions,
  now: number,
  chance: number,
): AfterFailure {
  const { upstreamStatus: status } = error
  const soon = now + pollGap(options, 0, undefined, chance)
  if (isOurs(error)) return { nextAt: Math.min(soon, latest(job, now)), failures: job.failures }
  const isUnknown = status === 404
  if (isUnknown && now - job.createdAt < UNKNOWN_MS) return { nextAt: soon, failures: 0 }
  const failures = job.failures + (status === 429 || status === 503 ? 0 : 1)
  if (failures >= (isUnknown ? MAX_UNKNOWN : MAX_FAILURES)) {
    const details = { reason: 'poll_error_limit', error_count: failures, last_error: shownMessage(error) }
    return {
      error: { code: 'poll_error', message: "The provider failed to report the job's status too often.", details },
    }
  }
  const gap = failureGap(Math.max(1, failures), error.retryAfterMs, chance)
  return { nextAt: Math.min(now + gap, latest(job, now)), failures }
}

/** Failures of the gateway to call a provider at all do not count against a job. A defect in reading an answer does. */
export const isOurs = ({ upstreamStatus, status }: GatewayError): boolean =>
  upstreamStatus === undefined && status !== 500

const latest = ({ deadlineAt }: Pick<Job, 'deadlineAt'>, now: number): number => Math.max(deadlineAt, now + 1)

/** The error's message without secrets, at most 500 characters, for the job's client. */
export const shownMessage = ({ message }: GatewayError): string => redactText(message).slice(0, MAX_REASON_CHARACTERS)
