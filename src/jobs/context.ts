/** Services of the job engine; `src/app/jobs.ts` provides them. */
import type { Catalog } from '../core/catalog.ts'
import type { JobOperation } from '../core/job.ts'
import type { Policies } from '../core/policy.ts'
import type { BlobStore, CallbackPoster, Job, JobCaller, JobStore, Log, PollHealth } from '../core/ports.ts'
import type { Translator } from '../core/translator.ts'
import type { AlertMessage } from '../limits/alerts.ts'

/** `jobs:` of gateway.yaml; times in milliseconds, sizes in bytes. */
export interface JobOptions {
  readonly poll: number
  readonly poll_max: number
  readonly timeout: number
  readonly keep: number
  readonly lease: number
  readonly concurrency: number
  readonly results: 'auto' | 'keep' | 'proxy'
  readonly max_result: number
  readonly max_kept: number
  /** Results that are read at a time. */
  readonly streams: number
  /** Claimed and not delivered yet: of this process, of one organization, and to one host. */
  readonly callback_concurrency: number
  readonly callback_per_organization: number
  readonly callback_per_host: number
  readonly callback_retry: number
  readonly callback_attempts: number
  readonly callback_timeout: number
  readonly callback_to: readonly string[]
}

/** Counters of polls, ends, lost claims and callbacks. */
export interface JobMetrics {
  poll(provider: string, outcome: string): void
  ended(labels: { provider: string; model: string; state: string }, seconds: number): void
  claimLost(): void
  callback(outcome: string): void
}

/** Alerts, whose callbacks are delivered beside those of jobs. */
export interface AlertCallbacks {
  /** Undefined where its entry is no longer configured. */
  messageOf(id: string): Promise<AlertMessage | undefined>
  count(on: string, outcome: string): void
  /** Looks at limits and credits after a job was charged. Neither throws nor waits. */
  charged(job: Job): void
  /** Drops alerts whose time was over before; returns how many. */
  prune(before: number, limit: number): Promise<number>
}

/** The ports and options that all parts of the engine share; `now` is in Unix milliseconds. */
export interface JobsContext {
  readonly store: JobStore
  readonly policies: Policies
  catalog(): Catalog
  readonly wires: ReadonlyMap<string, Translator>
  /** Job operations by kind. */
  readonly kinds: ReadonlyMap<string, JobOperation<never>>
  options(): JobOptions
  readonly caller: JobCaller
  readonly health: PollHealth
  readonly poster: CallbackPoster
  readonly alerts?: AlertCallbacks | undefined
  readonly blobs: BlobStore
  /** Keys of signed addresses, the newest first. */
  tokenKeys(): readonly Buffer[]
  /** Where clients reach the gateway. */
  publicUrl(): string
  readonly metrics: JobMetrics
  readonly log: Log
  now(): number
  random(): number
}
