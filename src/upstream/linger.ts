/**
 * Answers that are read on for a moment after their client has left, so that the provider's own report of what it did
 * is charged. Those beyond the bounds are cut off at once.
 */
import { FairShare } from '../limits/share.ts'

/** Share of all slots that one organization may have. */
const SHARE = 1 / 8

/** `linger` of gateway.yaml. */
export interface LingerOptions {
  /** How long an answer is read on, in milliseconds. */
  readonly time: number
  /** How many bytes of it are read on. */
  readonly size: number
  /** Answers at a time. */
  readonly per_organization: number
}
const DEFAULTS: LingerOptions = { time: 2_000, size: 1024 * 1024, per_organization: 64 }

/** The slots of a process. */
export class Lingering extends FairShare {
  readonly ms: number
  readonly bytes: number

  constructor({ time, size, per_organization }: LingerOptions = DEFAULTS) {
    super(per_organization / SHARE, undefined, { alone: SHARE, contended: SHARE })
    this.ms = time
    this.bytes = size
  }
}
