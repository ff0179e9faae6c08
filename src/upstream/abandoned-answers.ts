/**
 * Answers that are read on for a moment after their client has left, so that the provider's own report of what it did
 * is charged. Those beyond the bounds are cut off at once.
 */
import { FairShare } from '../limits/share.ts'

/** Share of all slots that one organization may have. */
const TENANT_SHARE = 1 / 8

/** `linger` of gateway.yaml. */
export interface AbandonedAnswerOptions {
  /** How long an answer is read on, in milliseconds. */
  readonly time: number
  /** How many bytes of it are read on. */
  readonly size: number
  /** Answers at a time. */
  readonly per_organization: number
}
const DEFAULTS: AbandonedAnswerOptions = { time: 2_000, size: 1024 * 1024, per_organization: 64 }

/** The slots of a process. */
export class AbandonedAnswers extends FairShare {
  readonly ms: number
  readonly bytes: number

  constructor({ time, size, per_organization }: AbandonedAnswerOptions = DEFAULTS) {
    super(per_organization / TENANT_SHARE, undefined, { alone: TENANT_SHARE, contended: TENANT_SHARE })
    this.ms = time
    this.bytes = size
  }
}
