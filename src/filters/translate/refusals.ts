/** Remembers failed fetches of a request, for its later attempts. */

import type { Exchange } from '../../core/exchange.ts'
import type { Target } from '../../core/translator.ts'
import { GatewayError } from '../../lib/error.ts'

/**
 * `thrown` as an attempt's end. Where the provider gets data alone by its manifest, another target may take the address
 * itself. Missing memory ends the request, as elsewhere.
 */
export function forTarget(thrown: unknown, { provider }: Target): unknown {
  if (!(thrown instanceof GatewayError)) return thrown
  return thrown.with({ failover: provider.inlineMedia === true && thrown.status < 500 })
}

/** Keeps the first refusal of each request, so that nothing is fetched twice. */
export class Refusals {
  readonly #kept = new WeakMap<Exchange, GatewayError>()

  /** Throws where the request's media was refused before. */
  check(ex: Exchange, target: Target): void {
    const kept = this.#kept.get(ex)
    if (kept) throw forTarget(kept, target)
  }

  /** Keeps what was thrown, and gives it for `target`. */
  keep(ex: Exchange, thrown: unknown, target: Target): unknown {
    if (thrown instanceof GatewayError) this.#kept.set(ex, thrown)
    return forTarget(thrown, target)
  }
}
