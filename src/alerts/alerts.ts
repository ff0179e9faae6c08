/** Watches limits and credits by the entries of the configuration, and tells what reaches one, once (docs/alerts.md). */
import { LRUCache } from 'lru-cache'
import type { Log } from '../core/ports.ts'
import { shortId } from '../lib/id.ts'
import { spanOf } from '../lib/period.ts'
import { upTo } from '../lib/up-to.ts'
import type {
  AlertCaller,
  AlertMessage,
  AlertStore,
  CreditStanding,
  LimitStanding,
  LimitWatch,
  MoneyState,
  RateStanding,
} from '../limits/alerts.ts'
import type { LimitTerms, Shortage } from '../limits/money.ts'
import { type AlertEntry, type AlertRule, compileAlerts, digestOf, WHOLE } from './rules.ts'
import { creditsTold, rateTold, sentenceOf, spendTold, type Told } from './told.ts'

/** Most keys of stored alerts in memory; the store has all. */
const MAX_SENT_KEYS = 50_000
/** A write that fails is tried again by a later request. */
const RETRY_MS = 10_000

interface AlertsOptions {
  /** Entries of the configuration in force. */
  readonly entries: () => readonly AlertEntry[]
  readonly store: () => AlertStore
  readonly log: Log
  /** Counts a new alert, or a delivery. */
  readonly count: (on: string, outcome: string) => void
  /** A callback is due. */
  readonly wake: () => void
  readonly now: () => number
}

/** Facts of a new alert, without its rule. */
interface Reached {
  readonly caller: AlertCaller
  /** Differs between all that one rule may tell. */
  readonly key: readonly unknown[]
  readonly endsAt: number | undefined
  readonly told: () => Told
}

/** The watch of one process. */
export class Alerts implements LimitWatch {
  readonly #options: AlertsOptions
  readonly #told = new LRUCache<string, true>(upTo(MAX_SENT_KEYS))
  #entries: readonly AlertEntry[] = []
  #rules: readonly AlertRule[] = []

  constructor(options: AlertsOptions) {
    this.#options = options
  }

  get isOn(): boolean {
    return this.#options.entries().length > 0
  }

  settled(caller: AlertCaller, { limits, credits }: MoneyState): void {
    for (const rule of this.#current()) {
      if (rule.on === 'credits') {
        if (credits && credits.balance < rule.below) this.#credits(rule, caller, credits)
        continue
      }
      for (const limit of limits) {
        if (limit.spent * WHOLE >= limit.limit * rule.shares[0]!.millionths) this.#limit(rule, caller, limit)
      }
    }
  }

  /** Tells that a limit is used up where less than half of it is left, and too little for a request. */
  refused(
    caller: AlertCaller & { readonly budgets: readonly LimitTerms[] },
    { exhausted, limitId, room, held }: Shortage,
  ): void {
    const isCredits = exhausted === 'credits'
    const known = caller.budgets.find(({ id }) => id === limitId)
    for (const rule of this.#current()) {
      if (isCredits && rule.on === 'credits' && room + held < rule.below) this.#readCredits(caller)
      if (!known || rule.on !== 'limit') continue
      const spent = known.limit - room - held
      this.#limit(rule, caller, { ...limitOf(known), spent }, spent * 2n >= known.limit)
    }
  }

  counted(caller: AlertCaller, rate: RateStanding): void {
    const { id, limit, used, windowMs } = rate
    const now = this.#options.now()
    const times = { start: now - windowMs, end: now + windowMs, now }
    for (const rule of this.#current()) {
      if (rule.on !== 'limit' || !rule.fits(caller)) continue
      for (const { fraction } of rule.shares) {
        if (used < limit * fraction) break
        const told = () => rateTold(rate, caller, fraction, { ...times, end: now })
        this.#tell(rule, { caller, key: [id, limit, fraction], endsAt: times.end, told })
      }
    }
  }

  /** The callback of an alert; undefined where its entry is no longer configured. */
  async messageOf(alertId: string): Promise<AlertMessage | undefined> {
    const stored = await this.#options.store().find(alertId)
    if (!stored) return undefined
    const told = JSON.parse(stored.body) as Told
    const entry = this.#current().find(({ id, shares }) => {
      return id === stored.rule && (told.on === 'credits' || shares.some(({ fraction }) => fraction === told.fraction))
    })
    if (entry?.url === undefined) return undefined
    const { url, secret, format } = entry
    return {
      ...{ url, secret, on: told.on },
      body: ({ id, type, createdAt }) =>
        format === 'slack'
          ? JSON.stringify({ text: sentenceOf(told) })
          : JSON.stringify({ object: 'event', id, type, created_at: createdAt, data: told }),
    }
  }

  #current(): readonly AlertRule[] {
    const entries = this.#options.entries()
    if (entries !== this.#entries) {
      this.#entries = entries
      this.#rules = compileAlerts(entries)
    }
    return this.#rules
  }

  #limit(rule: AlertRule, caller: AlertCaller, limit: LimitStanding, isUsedUp = false): void {
    if (!rule.fits(caller)) return
    const now = this.#options.now()
    const { id, period, zone, spent } = limit
    const span = period === 'total' ? undefined : spanOf(period, zone, now)
    const times = { start: span?.start, end: span?.end, now }
    for (const { fraction, millionths } of rule.shares) {
      const isReached = spent * WHOLE >= limit.limit * millionths || (isUsedUp && millionths === WHOLE)
      if (!isReached) continue
      const key = [id, String(limit.limit), span?.start ?? 0, fraction]
      this.#tell(rule, { caller, key, endsAt: span?.end, told: () => spendTold(limit, caller, fraction, times) })
    }
  }

  #credits(rule: AlertRule, caller: AlertCaller, { balance, credited }: CreditStanding): void {
    // An account that never had credits pays by invoice.
    if (credited <= 0n || !rule.fits(caller)) return
    const key = [caller.orgId, String(rule.below), String(credited)]
    const told = () => creditsTold(balance, rule.below, caller, this.#options.now())
    this.#tell(rule, { caller, key, endsAt: undefined, told })
  }

  #readCredits(caller: AlertCaller): void {
    const name = `credits ${caller.orgId}`
    if (this.#told.has(name)) return
    this.#told.set(name, true, { ttl: RETRY_MS })
    const read = async () => this.settled(caller, await this.#options.store().standing(caller.orgId, []))
    read().catch((err: unknown) => this.#options.log.warn({ err }, 'alert on credits not checked'))
  }

  #tell(rule: AlertRule, { caller, key: parts, endsAt, told }: Reached): void {
    const key = digestOf(rule.id, ...parts)
    if (this.#told.has(key)) return
    const now = this.#options.now()
    this.#told.set(key, true, endsAt === undefined ? {} : { ttl: Math.max(1, endsAt - now) })
    this.#raise(rule, key, caller.orgId, endsAt, told()).catch((err: unknown) => {
      this.#told.set(key, true, { ttl: RETRY_MS })
      this.#options.log.warn({ err }, 'alert not stored; tried again by a later request')
    })
  }

  async #raise(rule: AlertRule, key: string, orgId: string, endsAt: number | undefined, told: Told): Promise<void> {
    const { store, now, log, count, wake } = this.#options
    const alert = { id: `alert_${shortId()}`, key, rule: rule.id, orgId, at: now(), endsAt, body: JSON.stringify(told) }
    const type = rule.on === 'limit' ? 'limit.reached' : 'credits.low'
    const event = rule.url === undefined ? undefined : { id: `evt_${shortId()}`, type }
    if (!(await store().raise(alert, event))) return
    count(rule.on, 'raised')
    // The line has a time of its own.
    const { organization, key: keyOf, whose, time: _, ...facts } = told
    log.warn(
      { alert: alert.id, type, ...facts, whose: whose.name, organization: organization.name, key_id: keyOf.id },
      'alert',
    )
    if (event) wake()
  }
}

const limitOf = ({ id, of, limit, period, zone }: LimitTerms) => ({ id, of, limit, period, zone })
