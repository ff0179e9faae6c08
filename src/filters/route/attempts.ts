/** Records of a request's attempts. */
import type { Attempt } from '../../core/attempt.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { Target } from '../../core/translator.ts'
import type { GatewayError } from '../../lib/error.ts'
import type { CandidateTarget } from '../../routing/candidate.ts'
import { errorType } from '../../routing/outcome.ts'

/** Returns the record of an attempt that the provider has failed. `began`: on the monotonic clock. */
export const failedAttempt = (ex: Exchange, target: Target, error: GatewayError, began: number): Attempt => ({
  target,
  status: error.upstreamStatus!,
  succeeded: false,
  errorType: errorType(error),
  durationMs: performance.now() - began,
  startedMs: began - ex.timings.start,
  connectMs: ex.outbound.connectMs,
  reason: error.code,
})

/**
 * The attempt that answered. It counts as failed when the answer breaks after the commit point.
 * A class, because V8 makes a new hidden class for each object literal that has accessors.
 */
export class AnsweredAttempt implements Attempt {
  readonly step: CandidateTarget
  readonly status: number
  readonly startedMs: number
  readonly connectMs: number | undefined
  readonly #ex: Exchange

  /** `began`: on the monotonic clock. */
  constructor(ex: Exchange, step: CandidateTarget, status: number, began: number) {
    this.#ex = ex
    this.step = step
    this.status = status
    this.startedMs = began - ex.timings.start
    this.connectMs = ex.outbound.connectMs
  }

  get target(): Target {
    return this.step.target
  }

  get succeeded(): boolean {
    return this.errorType === 'none'
  }

  get errorType(): Attempt['errorType'] {
    const { failure } = this.#ex.answer
    return failure?.upstreamStatus === undefined ? 'none' : errorType(failure)
  }

  get reason(): string | null {
    const { failure } = this.#ex.answer
    return failure?.upstreamStatus === undefined ? null : failure.code
  }

  get durationMs(): number {
    const { end, sent } = this.#ex.timings
    return sent > 0 && end > 0 ? end - sent : 0
  }
}
