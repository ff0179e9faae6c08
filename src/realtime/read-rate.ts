/** How fast the sessions of one organization are read, all together: a message costs the event loop as much as it is long. */

/** What has come, at moments in milliseconds that ascend. */
export class ReadRate {
  readonly #rate: number
  #left: number
  #at = 0

  /** `rate`: bytes a second, and as many at once. */
  constructor(rate: number) {
    this.#rate = rate
    this.#left = rate
  }

  /** So many bytes have come: for how many milliseconds the side that sent them is not read. */
  took(bytes: number, now: number): number {
    this.#left = Math.min(this.#rate, this.#left + ((now - this.#at) / 1000) * this.#rate) - bytes
    this.#at = now
    return (Math.max(0, -this.#left) / this.#rate) * 1000
  }
}

/** Of both sides of an organization's sessions. */
export interface ReadRates {
  readonly client: ReadRate
  readonly provider: ReadRate
}

/** Of the organizations that have sessions in this process. */
const ofTenants = new Map<string, ReadRates & { sessions: number }>()

/** Those of an organization; `leave` says that the session has ended. */
export function enterReadRates(tenant: string, rate: number): ReadRates & { readonly leave: () => void } {
  const readRates = ofTenants.get(tenant) ?? { client: new ReadRate(rate), provider: new ReadRate(rate), sessions: 0 }
  readRates.sessions++
  ofTenants.set(tenant, readRates)
  const leave = () => {
    if (--readRates.sessions === 0) ofTenants.delete(tenant)
  }
  return { client: readRates.client, provider: readRates.provider, leave }
}
