/** Records each target that an exchange has tried. */
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
}
