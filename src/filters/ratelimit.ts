/** Requests per minute of an organization at one endpoint, with the headers of interface section 8. */
import { errors } from '../core/error.ts'
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory, Reply } from '../core/filter.ts'
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
    const limit = String(rpm)
    const headers = (quota: Quota): string[] => {
      const reset = Math.min(WINDOW_MS / 1000, Math.max(1, Math.ceil(quota.resetMs / 1000)))
      const remaining = String(quota.remaining)
      return [
        'ratelimit-policy',
        policy,
        'ratelimit',
        `"requests";r=${remaining};t=${reset}`,
        'ratelimit-limit',
        limit,
        'ratelimit-remaining',
        remaining,
        'ratelimit-reset',
        String(reset),
        'x-ratelimit-limit',
        limit,
        'x-ratelimit-remaining',
        remaining,
        'x-ratelimit-reset',
        String(Math.ceil(now() / 1000) + reset),
      ]
    }
    const admit = async (ex: Exchange, quota: Quota, next: () => Promise<Reply>): Promise<Reply> => {
      if (!quota.allowed) {
        const refused = errors.rateLimited(ex.endpoint.path, Math.min(quota.resetMs, WINDOW_MS) / 1000)
        throw refused.with({ headers: { ...asRecord(headers(quota)), ...refused.headers } })
      }
      const reply = await next()
      if (reply.status === 200) reply.headers.push(...headers(quota))
      return reply
    }
    return {
      handle(ex, next) {
        // Without a principal there is no organization to count for: the public catalogue is not limited here.
        if (!ex.principal) return next()
        const taken = counters.take(`${ex.principal.orgId} ${ex.endpoint.name}`, rpm, WINDOW_MS)
        return taken instanceof Promise ? taken.then(quota => admit(ex, quota, next)) : admit(ex, taken, next)
      },
    }
  },
}

function asRecord(pairs: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {}
  for (let at = 0; at < pairs.length; at += 2) record[pairs[at]!] = pairs[at + 1]!
  return record
}
