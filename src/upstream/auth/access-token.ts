/** A token with an expiry: cached, fetched once for concurrent requests, renewed before it expires. */
import type { Egress } from '../../lib/egress.ts'
import { asError, type GatewayError } from '../../lib/error.ts'
import type { Clock } from './strategy.ts'

/** The answer of a token endpoint. */
export interface Grant {
  readonly token: string
  /** How long it lasts from its request on. */
  readonly seconds: number
}

/** Gets the time (Unix milliseconds), and how the connection leaves. Rejects with a GatewayError. */
type FetchToken = (now: number, egress: Egress | undefined) => Promise<Grant>

/** A token is not used in its last minute: a request must arrive with it, and clocks differ. */
const MARGIN_MS = 60_000
/** How long before that a new one is fetched, for tokens that last long; of others, a tenth of their life. */
const RENEW_MS = 240_000
/** How long a failed fetch is reused for later requests. */
const RETRY_MS = 1000

/** The token of one credential: one fetch at a time, and after a failed one the same error for a second. */
export class AccessToken {
  readonly #fetch: FetchToken
  #current:
    | { readonly token: string; readonly from: number; readonly renew: number; readonly until: number }
    | undefined
  #pending: Promise<string> | undefined
  #failure: { readonly error: GatewayError; readonly at: number } | undefined

  constructor(fetch: FetchToken) {
    this.#fetch = fetch
  }

  /** The token, at once while one lasts. Throws, or rejects with, the GatewayError of a fetch that failed. */
  take(clock: Clock, egress?: Egress): string | Promise<string> {
    const now = clock()
    const current = this.#current
    // A clock that was set back would make a token last longer than it does.
    if (current && now < current.until && now >= current.from - MARGIN_MS) {
      if (now >= current.renew && !this.#failed(now)) this.#renewed(clock, egress).catch(() => undefined)
      return current.token
    }
    const error = this.#failed(now)
    if (error) throw error
    return this.#renewed(clock, egress)
  }

  /** The last failure while it stands. */
  #failed(now: number): GatewayError | undefined {
    if (!this.#failure) return undefined
    const since = now - this.#failure.at
    return since >= 0 && since < RETRY_MS ? this.#failure.error : undefined
  }

  #renewed(clock: Clock, egress: Egress | undefined): Promise<string> {
    this.#pending ??= this.#renew(clock, egress).finally(() => {
      this.#pending = undefined
    })
    return this.#pending
  }

  async #renew(clock: Clock, egress: Egress | undefined): Promise<string> {
    const from = clock()
    try {
      const { token, seconds } = await this.#fetch(from, egress)
      const until = from + seconds * 1000 - MARGIN_MS
      this.#current = { token, from, renew: until - Math.min(RENEW_MS, seconds * 100), until }
      this.#failure = undefined
      return token
    } catch (thrown) {
      const error = asError(thrown)
      this.#failure = { error, at: clock() }
      throw error
    }
  }
}
