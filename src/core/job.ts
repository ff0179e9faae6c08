/** Work that outlives its request, as operations and wires describe it. */
import type { Credential } from './catalog.ts'
import type { Terms } from './money.ts'
import type { Job, JobCallback, JobError, JobState } from './ports/jobs.ts'
import type { Target, WireRequest } from './translator.ts'
import type { Usage } from './usage.ts'

/** Identifies a job at its wire. `params`: see `JobOperation.params`. */
export interface UpstreamJob {
  readonly upstreamId: string
  readonly params: unknown
}

/** Where the provider has a result: at an address, behind a request of its wire, or in the field `JobForm.inlineResult`. */
export type FoundResult =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'own' }
  | { readonly kind: 'inline' }

/** The provider's report about a job. */
export interface JobReport {
  /** Undefined for a word that is not known: nothing changes. */
  readonly state?: Exclude<JobState, 'creating'> | undefined
  /** 0 to 100. */
  readonly progress?: number | undefined
  readonly error?: Pick<JobError, 'code' | 'message'> | undefined
  readonly result?: FoundResult | undefined
  readonly usage?: Usage | undefined
  /** When the provider drops the result, Unix milliseconds. */
  readonly expiresAt?: number | undefined
  /** How long to wait before the next question. */
  readonly afterMs?: number | undefined
}

/** How a wire speaks of jobs that it has created. Its decoder gives one `job` event for the create. */
export interface JobForm {
  poll(job: UpstreamJob, target: Target): WireRequest
  /** Reads a 200 of at most 1 MiB, 10,000 JSON values and 128 levels. Throws a GatewayError for what cannot be read. */
  read(body: string, target: Target): JobReport
  /** Where results are behind a request of the wire. */
  result?(job: UpstreamJob, target: Target): WireRequest
  cancel?(job: UpstreamJob, target: Target): WireRequest
  /** Origins besides the provider's own that its credential is for. */
  readonly sharesCredentialWith?: readonly string[]
  /** How long the provider keeps results; undefined where that is not known. */
  readonly lifeMs?: number
  /** The field of answers in whose first value a result may stand as base64. `read` gets an empty text in its place. */
  readonly inlineResult?: string
}

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
