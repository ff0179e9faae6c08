/** Our own count of a prompt, where no provider counts it. */
import { type Endpoint, value } from '../core/endpoint.ts'
import { PAYMENT_REQUIRED } from '../core/gateway-error.ts'
import type { TokenCount } from '../core/translator.ts'

/** Whatever a provider does wrong; a request that is wrong itself, or that its caller may not send, is refused. */
export const estimated: NonNullable<Endpoint['instead']> = (ex, error) => {
  const { upstreamStatus, failover, status } = error
  const isProviders = upstreamStatus !== undefined || failover || status >= 500 || status === PAYMENT_REQUIRED
  if (!ex.request || !isProviders) return undefined
  const count: TokenCount = { tokens: ex.promptUsage.prompt ?? 0 }
  const reply = value(count)
  reply.headers.push('x-gateway-estimated', 'true')
  return reply
}
