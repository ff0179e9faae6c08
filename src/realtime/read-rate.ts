/** How fast the sessions of one organization are read, all together: a message costs the event loop as much as it is long. */
import { TokenBucket } from '../limits/rate.ts'

/** Bytes of both sides of an organization's sessions. */
export interface ReadRates {
  readonly client: TokenBucket
  readonly provider: TokenBucket
}

/** Of the organizations that have sessions in this process. */
const ofTenants = new Map<string, ReadRates & { sessions: number }>()

/** Those of an organization, of `rate` bytes a second; `leave` says that the session has ended. */
export function enterReadRates(tenant: string, rate: number): ReadRates & { readonly leave: () => void } {
  const made = () => ({ client: new TokenBucket(rate, rate), provider: new TokenBucket(rate, rate), sessions: 0 })
  const readRates = ofTenants.get(tenant) ?? made()
  readRates.sessions++
  ofTenants.set(tenant, readRates)
  const leave = () => {
    if (--readRates.sessions === 0) ofTenants.delete(tenant)
  }
  return { client: readRates.client, provider: readRates.provider, leave }
}
