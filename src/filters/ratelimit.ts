/** Limits requests of an organization, per minute at one endpoint and in flight (docs/contract.md#rate-limits). */

import { LRUCache } from 'lru-cache'
import { addressKey } from '../core/address.ts'
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory } from '../core/filter.ts'
import { type Money, parseMoney } from '../core/money.ts'
import { planNames } from '../core/plan.ts'
import type { Ledger, Principal, Quota } from '../core/ports.ts'
import type { Reply } from '../core/reply.ts'
import { type Infer, s } from '../core/schema.ts'
import { errors } from '../lib/error.ts'

const WINDOW_MS = 60_000
const WINDOW_SECONDS = WINDOW_MS / 1000

const count = s.integer({ minimum: 1 })

/** Other limits for the organizations of which all of it is true. The first rule that fits counts. */
const rule = s.object({
  /** Names or ids. */
  organizations: s.optional(s.array(s.string())),
  /** Coding plans; `none` are organizations without one. */
  plans: s.optional(s.array(s.enum(...planNames, 'none'))),
  /** At least so old. */
  age: s.optional(s.duration()),
  /** At least so many USD of credits used; looked up every quarter of an hour. */
  spent: s.optional(s.decimal({ pattern: '^\\d{1,9}(\\.\\d{1,9})?$' })),
  rpm: s.optional(count),
  /** Multiplies the `rpm` of the other rules; for rules that apply to every endpoint. */
  factor: s.optional(s.number({ exclusiveMinimum: 0 })),
  concurrency: s.optional(count),
})

const options = s.object({
  rpm: s.default(count, 600),
  /** Over all endpoints together; without bound when it is not set. */
  concurrency: s.optional(count),
  rules: s.default(s.array(rule), []),
})

/** Throws 429. `Exchange.replyHeaders` show the state of the rate limit. */
export const ratelimit: FilterFactory<Infer<typeof options>> = {
  name: 'ratelimit',
  options,
  needs: ['principal'],
  gives: ['quota'],
  create({ rpm, concurrency, rules }, { counters, ledger, now }) {
    const usual = limits(rpm, concurrency)
    const used = lookup(ledger, now)
    const others = rules.map(given => ({
      fits: condition(given, used, now),
      limits: limits(given.rpm ?? Math.max(1, Math.round(rpm * (given.factor ?? 1))), given.concurrency ?? concurrency),
    }))
    const limitsOf = (principal: Principal): Limits => {
      for (const { fits, limits } of others) if (fits(principal)) return limits
      return usual
    }
    /** Exchanges that hold a place. */
    const inside = new WeakSet<Exchange>()

    const enter = (ex: Exchange, limits: Limits, next: Next): Promise<Reply> => {
      const limit = limits.concurrency
      if (limit === undefined) return take(ex, limits, next)
      const proceed = (free: boolean) => {
        if (!free) throw crowded(limit)
        inside.add(ex)
        return take(ex, limits, next)
      }
      const entered = counters.enter(placeOf(ex), limit)
      return entered instanceof Promise ? entered.then(proceed) : proceed(entered)
    }
    const take = (ex: Exchange, limits: Limits, next: Next): Promise<Reply> => {
      const taken = counters.take(`${whoseOf(ex)} ${ex.endpoint.name}`, limits.rpm, WINDOW_MS)
      return taken instanceof Promise
        ? taken.then(quota => admit(ex, limits, quota, next))
        : admit(ex, limits, taken, next)
    }
    const admit = (ex: Exchange, limits: Limits, quota: Quota, next: Next): Promise<Reply> => {
      if (!quota.allowed) {
        const refused = errors.rateLimited(ex.endpoint.path, Math.min(quota.resetMs, WINDOW_MS) / 1000)
        throw refused.with({ headers: { ...asRecord(headers(limits, quota, now())), ...refused.headers } })
      }
      ex.answer.headers = headers(limits, quota, now())
      return next()
    }
    return {
      handle(ex, next) {
        if (ex.caller.principal) return enter(ex, limitsOf(ex.caller.principal), next)
        // Without a principal there is no organization to count for: the public catalogue is not limited here.
        return ex.endpoint.limitsAddress ? take(ex, usual, next) : next()
      },
      finish(ex) {
        if (inside.delete(ex)) return counters.leave(placeOf(ex))
      },
    }
  },
}

type Next = () => Promise<Reply>

/** Limits of an organization, with the texts of their headers. */
interface Limits {
  readonly rpm: number
  readonly concurrency: number | undefined
  readonly limit: string
  readonly policy: string
}

const limits = (rpm: number, concurrency: number | undefined): Limits => ({
  rpm,
  concurrency,
  limit: String(rpm),
  policy: `"requests";q=${rpm};w=${WINDOW_SECONDS}`,
})

const whoseOf = (ex: Exchange): string => ex.caller.principal?.orgId ?? `address ${addressKey(ex.http.clientAddress)}`

const placeOf = (ex: Exchange): string => `${ex.caller.principal!.orgId} running`

type Lookup = (orgId: string) => Money

/** Whether all conditions of a rule hold. */
function condition({ organizations, plans, age, spent }: Infer<typeof rule>, used: Lookup, now: () => number) {
  const least = spent === undefined ? undefined : parseMoney(spent)
  return ({ orgId, orgName, plan, since }: Principal): boolean =>
    (!organizations || organizations.includes(orgId) || organizations.includes(orgName)) &&
    (!plans || plans.includes(plan?.plan ?? 'none')) &&
    (age === undefined || now() - since >= age) &&
    (least === undefined || used(orgId) >= least)
}

/** Credits that organizations have used: no request waits for them, so that they are zero at first, and old later. */
function lookup(ledger: Ledger, now: () => number): Lookup {
  const known = new LRUCache<string, { used: Money; at: number }>({ max: MAX_ORGANIZATIONS })
  const pending = new Set<string>()
  return orgId => {
    const found = known.get(orgId)
    if (!pending.has(orgId) && (!found || now() - found.at > REFRESH_MS)) {
      pending.add(orgId)
      void ledger
        .balance(orgId)
        .then(({ used }) => known.set(orgId, { used, at: now() }))
        .catch(() => undefined)
        .finally(() => pending.delete(orgId))
    }
    return found?.used ?? 0n
  }
}
const MAX_ORGANIZATIONS = 10_000
const REFRESH_MS = 900_000

function headers({ limit, policy }: Limits, quota: Quota, now: number): string[] {
  const reset = Math.min(WINDOW_SECONDS, Math.max(1, Math.ceil(quota.resetMs / 1000)))
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
    String(Math.ceil(now / 1000) + reset),
  ]
}

/** The 429 for requests in flight, which has no headers of a requests-per-minute quota. */
function crowded(limit: number) {
  const refused = errors.tooManyConcurrent(limit)
  const policy = `"concurrency";q=${limit};qu="concurrent-requests"`
  return refused.with({ headers: { 'ratelimit-policy': policy, ...refused.headers } })
}

function asRecord(pairs: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {}
  for (let at = 0; at < pairs.length; at += 2) record[pairs[at]!] = pairs[at + 1]!
  return record
}
