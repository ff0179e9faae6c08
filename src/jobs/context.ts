/** What the engine of jobs works with; `src/app/jobs.ts` provides it. */
import type { Cancellation } from '../core/cancel.ts'
import type { Catalog } from '../core/catalog.ts'
import type { GatewayError } from '../core/error.ts'
import type { JobOperation } from '../core/job.ts'
import type { Policies } from '../core/policy.ts'
import type { JobStore, Log } from '../core/ports.ts'
import type { Target, Translator, WireRequest } from '../core/translator.ts'

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
  readonly callback_retry: number
  readonly callback_attempts: number
  readonly callback_timeout: number
  readonly callback_to: readonly string[]
}

/** An answer whose body is read as it comes. */
export interface OpenAnswer {
  readonly status: number
  header(name: string): string | undefined
  readonly chunks: AsyncIterable<Buffer>
  /** Ends it, read or not. */
  destroy(): void
}

/** The caller of one request to a provider, and its deadlines in milliseconds. */
export interface CallOptions {
  readonly requestId: string
  readonly tenant: string
  readonly signal: Cancellation
  /** Names and values besides those of the wire. */
  readonly headers?: Readonly<Record<string, string>>
  /** Until the head is here, and between two chunks. */
  readonly headMs: number
  readonly idleMs: number
}

/** Requests to the providers of jobs. All reject with a GatewayError. */
interface JobCaller {
  /** At the provider itself, signed. */
  own(target: Target, request: WireRequest, options: CallOptions): Promise<OpenAnswer>
  /** At an address that a provider gave: with its credential on its own origin alone, else guarded and with nothing of ours. */
  at(target: Target, url: string, options: CallOptions): Promise<OpenAnswer>
}

/** The answer to a callback, of any status. */
export interface Posted {
  readonly status: number
  /** Its first 4,000 characters. */
  readonly text: string
}
/** Posts to addresses that clients gave. */
interface CallbackPoster {
  /** Throws a 400 for an address that nothing is posted to. */
  check(url: string, allowed: readonly string[]): void
  /** Rejects with an Error whose message shows nothing of what is inside. */
  post(
    url: string,
    allowed: readonly string[],
    headers: Record<string, string>,
    body: string,
    ms: number,
  ): Promise<Posted>
}

/** Results that are kept. */
interface BlobStore {
  /** Rejects with `tooLarge()` beyond `maxBytes`; then nothing is left. */
  write(
    chunks: AsyncIterable<Buffer>,
    maxBytes: number,
    tooLarge: () => Error,
  ): Promise<{ readonly blob: string; readonly bytes: number; readonly etag: string; readonly head: Buffer }>
  /** Bytes from `start` to `end`, inclusive; undefined where the file is missing. */
  read(blob: string, start: number, end: number): Promise<AsyncIterable<Buffer> | undefined>
  remove(blob: string): Promise<void>
}

/** Counters of polls, ends, lost claims and callbacks. */
export interface JobMetrics {
  poll(provider: string, outcome: string): void
  ended(labels: { provider: string; model: string; state: string }, seconds: number): void
  claimLost(): void
  callback(outcome: string): void
}

/** Whether providers answer polls; new jobs are created where they do. */
interface PollHealth {
  /** A poll of an organization's job has ended, with an answer or with `error`. */
  polled(target: Target, org: string, error?: GatewayError): void
}

/** The ports and options that all parts of the engine share; `now` is in Unix milliseconds. */
export interface JobsContext {
  readonly store: JobStore
  readonly policies: Policies
  catalog(): Catalog
  readonly wires: ReadonlyMap<string, Translator>
  /** By kind. */
  readonly kinds: ReadonlyMap<string, JobOperation<never>>
  options(): JobOptions
  readonly caller: JobCaller
  readonly health: PollHealth
  readonly poster: CallbackPoster
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
