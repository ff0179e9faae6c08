/** Decides what follows a failed poll, from values only. */

import type { Job, JobError } from '../core/ports.ts'
import type { GatewayError } from '../lib/error.ts'
import { redactText } from '../secrets/redact.ts'
import { failureGap, pollGap } from './back-off.ts'
import type { JobOptions } from './context.ts'

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
