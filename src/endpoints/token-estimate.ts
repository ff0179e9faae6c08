/** The gateway's own estimate of a prompt's tokens, where no provider counts them. */

import type { Endpoint } from '../core/endpoint.ts'
import { value } from '../core/reply.ts'
import type { TokenCount } from '../core/wire.ts'
import { PAYMENT_REQUIRED } from '../lib/gateway-error.ts'

/** Replaces provider failures; invalid or forbidden requests are still refused. */
export const estimated: NonNullable<Endpoint['instead']> = (ex, error) => {
  const { upstreamStatus, failover, status } = error
  const isProviders = upstreamStatus !== undefined || failover || status >= 500 || status === PAYMENT_REQUIRED
  if (!ex.request || !isProviders) return undefined
  const count: TokenCount = { tokens: ex.prompt.usage.prompt ?? 0 }
  const reply = value(count)
  reply.headers.push('x-gateway-estimated', 'true')
  return reply
}
