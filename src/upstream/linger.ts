/**
 * Answers that are read on for a moment after their client has left, so that the provider's own report of what it did
 * is charged. So many at a time of each organization; those beyond are cut off at once.
 */
const PER_TENANT = 64
export const LINGER_MS = 2_000
export const LINGER_BYTES = 1024 * 1024

export class Lingering {
  /** By organization. */
  readonly #open = new Map<string, number>()

  /** False when the organization has as many as it may. */
  begin(tenant: string): boolean {
    const open = this.#open.get(tenant) ?? 0
    if (open >= PER_TENANT) return false
    this.#open.set(tenant, open + 1)
    return true
  }

  end(tenant: string): void {
    const open = this.#open.get(tenant)! - 1
    if (open === 0) this.#open.delete(tenant)
    else this.#open.set(tenant, open)
  }
}
