/** Limits requests of organizations, and whatever rules and commands say besides (docs/rate-limits.md). */

import { LRUCache } from 'lru-cache'
import { addressKey } from '../../core/address.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { FilterFactory } from '../../core/filter.ts'
import { type Money, parseMoney } from '../../core/money.ts'
import { planNames } from '../../core/plan.ts'
import type { Ledger, Principal, Quota } from '../../core/ports.ts'
import type { Reply } from '../../core/reply.ts'
import { type Infer, s } from '../../core/schema.ts'
import { errors, type GatewayError } from '../../lib/error.ts'
import { upTo } from '../../lib/up-to.ts'
import { windowKinds } from '../../limits/kinds.ts'
import { isCopy } from '../copy.ts'
import { asRecord, headersOf, type RatePolicy, ratePolicy } from './headers.ts'
import { type PassedLimits, passedOf, passLimits } from './passed.ts'
import { type LimitPlan, LimitPlans } from './plan.ts'
import { compileRule, limitRule } from './rules.ts'

const { windowMs: WINDOW_MS } = windowKinds.rpm

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
  /** Limits of any kind, by what each rule says. All that fit count. */
  limits: s.default(s.array(limitRule), []),
})

/** Throws 429. `Exchange.replyHeaders` show the state of the rate limit. */
export const ratelimit: FilterFactory<Infer<typeof options>> = {
  name: 'ratelimit',
  options,
  needs: ['principal'],
  gives: ['quota'],
  create({ rpm, concurrency, rules, limits: written }, services) {
    const { counters, ledger, now } = services
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
    const plans = new LimitPlans(written.map(compileRule))
    /** Exchanges that hold a place. */
    const inside = new WeakSet<Exchange>()

    const enter = (ex: Exchange, limits: Limits, next: Next, passed?: PassedLimits): Promise<Reply> => {
      const limit = limits.concurrency
      if (limit === undefined) return take(ex, limits, next, passed)
      const proceed = (free: boolean) => {
        if (!free) throw refuse(crowded(limit), passed)
        inside.add(ex)
        return take(ex, limits, next, passed)
      }
      const entered = counters.enter(placeOf(ex), limit)
      return entered instanceof Promise ? entered.then(proceed) : proceed(entered)
    }
    const take = (ex: Exchange, limits: Limits, next: Next, passed?: PassedLimits): Promise<Reply> => {
      const taken = counters.take(keyOf(ex), limits.rpm, WINDOW_MS)
      return taken instanceof Promise
        ? taken.then(quota => admit(ex, limits, quota, next, passed))
        : admit(ex, limits, taken, next, passed)
    }
    const admit = (ex: Exchange, limits: Limits, quota: Quota, next: Next, passed?: PassedLimits): Promise<Reply> => {
      const { policy } = limits
      if (!quota.allowed) {
        const refused = errors.rateLimited(ex.endpoint.path, Math.min(quota.resetMs, WINDOW_MS) / 1000)
        throw refuse(
          refused.with({ headers: { ...asRecord(headersOf(policy, quota, now())), ...refused.headers } }),
          passed,
        )
      }
      if (passed) passed.counted(keyOf(ex), { policy, quota })
      else ex.answer.headers = headersOf(policy, quota, now())
      return next()
    }
    const pass = async (ex: Exchange, plan: LimitPlan, limits: Limits, next: Next): Promise<Reply> => {
      const passed = passLimits(ex, plan, services)
      await passed.begin()
      return enter(ex, limits, next, passed)
    }
    return {
      handle(ex, next) {
        if (isCopy(ex)) return next()
        const { principal } = ex.caller
        // Without a principal there is no organization to count for: the public catalogue is not limited here.
        if (!principal) return ex.endpoint.limitsAddress ? take(ex, usual, next) : next()
        const { endpoint } = ex
        const isCall = (endpoint.serve === 'upstream' || endpoint.upgrade) && !endpoint.counts
        const plan = isCall ? plans.of(principal, endpoint.name) : undefined
        return plan ? pass(ex, plan, limitsOf(principal), next) : enter(ex, limitsOf(principal), next)
      },
      finish(ex) {
        const left = inside.delete(ex) ? counters.leave(placeOf(ex)) : undefined
        return passedOf(ex)?.end() ?? left
      },
    }
  },
}

type Next = () => Promise<Reply>

/** Limits of an organization. */
interface Limits {
  readonly rpm: number
  readonly concurrency: number | undefined
  readonly policy: RatePolicy
}

const limits = (rpm: number, concurrency: number | undefined): Limits => ({
  rpm,
  concurrency,
  policy: ratePolicy('requests', rpm, windowKinds.rpm),
})

/** Marks what was taken before as given back. */
function refuse(error: GatewayError, passed: PassedLimits | undefined): GatewayError {
  passed?.refused()
  return error
}

const whoseOf = (ex: Exchange): string => ex.caller.principal?.orgId ?? `address ${addressKey(ex.http.clientAddress)}`

const keyOf = (ex: Exchange): string => `${whoseOf(ex)} ${ex.endpoint.name}`

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
  const known = new LRUCache<string, { used: Money; at: number }>(upTo(MAX_ORGANIZATIONS))
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

/** The 429 for requests in flight, which has no headers of a requests-per-minute quota. */
function crowded(limit: number) {
  const refused = errors.tooManyConcurrent(limit)
  const policy = `"concurrency";q=${limit};qu="concurrent-requests"`
  return refused.with({ headers: { 'ratelimit-policy': policy, ...refused.headers } })
}
