/** Services that the job engine uses: calls to providers, callbacks, blobs, and the health of polls. */

import type { GatewayError } from '../../lib/error.ts'
import type { Cancellation } from '../cancel.ts'
import type { Target } from '../translator.ts'
import type { WireRequest } from '../wire.ts'

/** An answer whose body is read as it comes. */
export interface JobAnswer {
  readonly status: number
  header(name: string): string | undefined
  readonly chunks: AsyncIterable<Buffer>
  /** A text of it without the credential that was sent; absent where none was. */
  readonly masked?: ((text: string) => string) | undefined
  /** Ends it, read or not. */
  destroy(): void
}

/** The caller of one request to a provider, and its deadlines in milliseconds. */
export interface JobCall {
  readonly requestId: string
  readonly tenant: string
  readonly signal: Cancellation
  /** Besides those of the wire. */
  readonly headers?: Readonly<Record<string, string>>
  /** Until the head is here, and between two chunks. */
  readonly headMs: number
  readonly idleMs: number
}

/** Requests to the providers of jobs. All reject with a GatewayError. */
export interface JobCaller {
  /** At the provider itself, signed. */
  own(target: Target, request: WireRequest, options: JobCall): Promise<JobAnswer>
  /** At an address that a provider gave: with its credential on its own origin, else guarded and without. */
  at(target: Target, url: string, options: JobCall): Promise<JobAnswer>
}

/** The answer to a callback, of any status. */
export interface CallbackAnswer {
  readonly status: number
  /** Its first 4,000 characters. */
  readonly text: string
}

/** Posts to addresses that clients gave. */
export interface CallbackPoster {
  /** Throws a 400 for an address that nothing is posted to. */
  check(url: string, allowed: readonly string[]): void
  /** Rejects with an Error whose message shows nothing of what is inside. */
  post(
    url: string,
    allowed: readonly string[],
    headers: Record<string, string>,
    body: string,
    ms: number,
  ): Promise<CallbackAnswer>
}

/** Results of jobs that are kept here. */
export interface BlobStore {
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

/** Whether providers answer polls; new jobs are created where they do. */
export interface PollHealth {
  /** A poll of an organization's job has ended, with an answer or with `error`. */
  polled(target: Target, org: string, error?: GatewayError): void
}
