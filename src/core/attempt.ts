/** Records of an exchange on its way: the targets that it has tried, and its moments. */
import type { Target } from './translator.ts'

/** One try at one target, as `metadata.routing` shows it. */
export interface Attempt {
  readonly target: Target
  /** The upstream's status; 0 when no answer came. */
  readonly status: number
  readonly succeeded: boolean
  readonly errorType: 'none' | 'network_error' | 'rate_limited' | 'timeout' | 'upstream_error'
  /** Milliseconds until it failed; of the attempt that answered, until its answer ended. */
  readonly durationMs: number
  /** Milliseconds from the arrival of the request to the start of the attempt. */
  readonly startedMs: number
  /** Milliseconds until it had a connection; 0 for one that was open. Undefined where that is not known. */
  readonly connectMs?: number | undefined
  /** Error code because of which it ended; null for success. */
  readonly reason: string | null
}

/** Milliseconds on the monotonic clock; 0 until it happened. */
export interface Timings {
  readonly start: number
  /** All of the request was here, however slowly it came; until then as `start`. */
  read: number
  sent: number
  /** The upstream's first event of the attempt that answered. */
  answered: number
  firstToken: number
  end: number
  /** A duration: how long reading from the provider was paused for a slow client. */
  stalled: number
}
