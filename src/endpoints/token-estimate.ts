/** The gateway's own estimate of a prompt's tokens, where no provider counts them. */

import type { Endpoint } from '../core/endpoint.ts'
import type { Event } from '../core/event.ts'
import { only } from '../core/reply.ts'
import type { TokenCount } from '../core/wire.ts'
import { PAYMENT_REQUIRED } from '../lib/gateway-error.ts'

/** Nothing is generated, so nothing is used and charged. */
const NO_USAGE = { prompt: 0, completion: 0, request: 0 }

/** Replaces provider failures; invalid or forbidden requests are still refused. */
export const estimated: NonNullable<Endpoint['instead']> = (ex, error) => {
  const { upstreamStatus, failover, status } = error
  const isProviders = upstreamStatus !== undefined || failover || status >= 500 || status === PAYMENT_REQUIRED
  if (!ex.request || !isProviders) return undefined
  const count: TokenCount = { tokens: ex.prompt.usage.prompt ?? 0 }
  const events = only<Event>({ type: 'usage', usage: NO_USAGE }, { type: 'result', value: count })
  return { status: 200, headers: ['x-gateway-estimated', 'true'], events }
}
