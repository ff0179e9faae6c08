/**
 * Answers that are read on for a moment after their client has left, so that the provider's own report of what it did
 * is charged. Those beyond the bounds are cut off at once.
 */
import { FairSlots } from '../core/fair-slots.ts'

/** Of all slots, what one organization may have. */
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
export class Lingering {
  readonly ms: number
  readonly bytes: number
  readonly #slots: FairSlots

  constructor({ time, size, per_organization }: LingerOptions = DEFAULTS) {
    this.ms = time
    this.bytes = size
    this.#slots = new FairSlots(per_organization / SHARE, undefined, { alone: SHARE, contended: SHARE })
  }

  /** Takes a slot until `leave`; false when none is free, or the organization has its share. */
  take(tenant: string): boolean {
    return this.#slots.take(tenant)
  }

  leave(tenant: string): void {
    this.#slots.leave(tenant)
  }
}
