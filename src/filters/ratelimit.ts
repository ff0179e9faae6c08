/** Requests per minute of an organization at one endpoint, with the headers of interface section 8. */
import { errors } from '../core/error.ts'
import type { FilterFactory } from '../core/filter.ts'
import type { Quota } from '../core/ports.ts'
import { type Infer, s } from '../core/schema.ts'

const WINDOW_MS = 60_000

const options = s.object({ rpm: s.default(s.integer({ minimum: 1 }), 600) })

export const ratelimit: FilterFactory<Infer<typeof options>> = {
  name: 'ratelimit',
  options,
  needs: ['principal'],
  gives: ['quota'],
  create({ rpm }, { counters, now }) {
    const policy = `"requests";q=${rpm};w=${WINDOW_MS / 1000}`
    const headers = (quota: Quota): Record<string, string> => {
      const reset = Math.min(WINDOW_MS / 1000, Math.max(1, Math.ceil(quota.resetMs / 1000)))
      return {
        'ratelimit-policy': policy,
        ratelimit: `"requests";r=${quota.remaining};t=${reset}`,
        'ratelimit-limit': String(rpm),
        'ratelimit-remaining': String(quota.remaining),
        'ratelimit-reset': String(reset),
        'x-ratelimit-limit': String(rpm),
        'x-ratelimit-remaining': String(quota.remaining),
        'x-ratelimit-reset': String(Math.ceil(now() / 1000) + reset),
      }
    }
    return {
      async handle(ex, next) {
        // Without a principal there is no organization to count for: the public catalogue is not limited here.
        if (!ex.principal) return next()
        const taken = counters.take(`${ex.principal.orgId} ${ex.endpoint.name}`, rpm, WINDOW_MS)
        const quota = taken instanceof Promise ? await taken : taken
        if (!quota.allowed) {
          const refused = errors.rateLimited(ex.endpoint.path, Math.min(quota.resetMs, WINDOW_MS) / 1000)
          throw refused.with({ headers: { ...headers(quota), ...refused.headers } })
        }
        const reply = await next()
        if (reply.status === 200) Object.assign(reply.headers, headers(quota))
        return reply
      },
    }
  },
}
