/** Pauses between long steps of work on the event loop. */

/** A step that took so long, in milliseconds, is followed by a pause. */
const LONG_MS = 4
/** What counts of a step: one that takes longer is a fault of the machine more often than of its tenant. */
const MOST_MS = 100
/** By so much the free time that long steps must leave may be in arrears; beyond it all wait. */
const ARREARS_MS = 100

/**
 * Half of the loop is for what is not done in steps. A long step is followed by a pause of its tenant, as long as itself,
 * and by twice that longer for each other tenant that has been in a pause meanwhile: so many get equal parts of the other
 * half. None waits for the pause of another one, but where many that were in none have taken long steps one after the
 * other. All times are in milliseconds.
 */
export class Pauses {
  /** When those of tenants end; some are over. */
  readonly #ends = new Map<string, number>()
  /** When half of the time will have been free of long steps, if no further one comes. */
  #evenAt = 0

  /** When the tenant may take a step: not later than `now` where it may at once. */
  endOf(tenant: string, now: number): number {
    return Math.max(this.#ends.get(tenant) ?? now, this.#evenAt - ARREARS_MS)
  }

  /** A step of the tenant has ended. */
  stepped(tenant: string, began: number, now: number): void {
    const took = Math.min(now - began, MOST_MS)
    if (took < LONG_MS) return
    for (const [other, end] of this.#ends) if (end <= began) this.#ends.delete(other)
    this.#ends.delete(tenant)
    this.#ends.set(tenant, now + took * (1 + 2 * this.#ends.size))
    this.#evenAt = Math.max(this.#evenAt, began) + 2 * took
  }
}
