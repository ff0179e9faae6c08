/** Work that outlives its request, as operations and wires describe it. */

import type { Terms } from './money.ts'
import type { Job, JobCallback, JobState } from './ports/jobs.ts'
import type { Credential } from './provider-settings.ts'
import type { Target } from './translator.ts'
import type { Usage } from './usage.ts'

/** Describes an operation's jobs, so that the engine never tests for an operation. */
export interface JobOperation<R> {
  readonly kind: string
  /** Prefix of job ids. */
  readonly prefix: string
  /** JSON: what the job shows of its request, and what its price depends on; nothing of a prompt. */
  params(request: Readonly<R>, target: Target): unknown
  callback(request: Readonly<R>): JobCallback | null
  terms(params: unknown): Terms
  /** Returns the usage to charge for a completed job. */
  usage(params: unknown, reported: Usage): Usage
  /** The media type of a result, by its first bytes; undefined for what is none. */
  resultType(head: Buffer): string | undefined
  /** The type of the event that tells an end. */
  event(state: JobState): string
  /** As clients get it. `address`: where its result is read without a key. */
  show(job: Job, address: string | undefined): object
}

/** The states that nothing follows. */
export const isFinal = (state: JobState): boolean =>
  state === 'completed' || state === 'failed' || state === 'canceled' || state === 'expired'

/** `platform:<fingerprint>` or `byok:<id>`: the credential for later requests about the job. */
export function credentialName(credential: Credential | undefined): string {
  if (credential === undefined) return 'none'
  return credential.source === 'byok' ? `byok:${credential.id}` : `platform:${credential.fingerprint}`
}
