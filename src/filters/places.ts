/** Places for requests: so many at work, so many waiting for a short time, shared out among organizations. */
import type { Cancellation } from '../core/cancel.ts'
import { errors, type GatewayError } from '../core/error.ts'
import type { Metrics } from '../core/ports.ts'
import { timerMs } from '../core/timer.ts'

export interface PlaceRules {
  /** Requests at work at the same time. */
  readonly inFlight: number
  /** Requests that may wait until one of those ends. */
  readonly queue: number
  readonly waitMs: number
  /** Of places and queue, what one organization may take while others ask too; 0 to 1. */
  readonly share: number
}

/** An organization counts as asking for this long after its last request came or ended. */
const ACTIVE_MS = 10 * 60_000

/** Idle tenants are kept up to this number, which is cheaper than to make them again. */
const MAX_IDLE = 1000

/** When an organization was last seen. */
interface Sign {
  readonly id: string
  readonly at: number
}

interface Waiter {
  readonly go: () => void
  readonly refuse: (error: GatewayError) => void
}

/** A tenant as it stands here. */
class Tenant {
  readonly id: string
  running = 0
  /** In the order of arrival. */
  readonly waiting: Waiter[] = []

  constructor(id: string) {
    this.id = id
  }
}

/** What a request holds until it ends. */
export type Place = Tenant

/**
 * An organization alone may take all there is. As soon as two have asked, each has its share and no more, so that
 * the one that floods refuses itself; and those that wait take turns by organization, not by arrival.
 */
export class Places {
  readonly #metrics: Pick<Metrics, 'inFlight' | 'waiting'>
  readonly #now: () => number
  readonly #tenants = new Map<string, Tenant>()
  /** Those with waiters; the next turn is the first one's. */
  readonly #turns: Tenant[] = []
  #running = 0
  #waiting = 0
  /** Those of the newest request; who is in stays in, whatever they become. */
  #rules: PlaceRules
  /** The last two organizations that differ: enough to tell whether anybody else is there. */
  #newest: Sign = { id: '', at: Number.NEGATIVE_INFINITY }
  #other: Sign = this.#newest

  /** `now` is a monotonic clock in milliseconds. */
  constructor(
    rules: PlaceRules,
    metrics: Pick<Metrics, 'inFlight' | 'waiting'>,
    now: () => number = () => performance.now(),
  ) {
    this.#rules = rules
    this.#metrics = metrics
    this.#now = now
  }

  /**
   * A place, at once or after a wait; every one must be left. Throws, or rejects with, 529 when there is none and no
   * room to wait or the wait is over, and with the reason of `signal` when the caller goes away.
   */
  take(id: string, rules: PlaceRules, signal: Cancellation): Place | Promise<Place> {
    this.#rules = rules
    this.#saw(id)
    let tenant = this.#tenants.get(id)
    if (!tenant) {
      tenant = new Tenant(id)
      this.#tenants.set(id, tenant)
    }
    if (this.#running < rules.inFlight && this.#hasShare(tenant)) return this.#enter(tenant)
    const { queue } = rules
    if (this.#waiting >= queue || tenant.waiting.length >= this.#shareOf(queue, id)) {
      this.#forget(tenant)
      throw errors.overloaded()
    }
    return this.#wait(tenant, signal)
  }

  leave(tenant: Place): void {
    tenant.running--
    this.#running--
    this.#metrics.inFlight(-1)
    this.#saw(tenant.id)
    this.#admit()
    this.#forget(tenant)
  }

  #enter(tenant: Tenant): Tenant {
    tenant.running++
    this.#running++
    this.#metrics.inFlight(1)
    return tenant
  }

  #wait(tenant: Tenant, signal: Cancellation): Promise<Place> {
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer)
        signal.ignore(gone)
        this.#waiting--
        this.#metrics.waiting(-1)
      }
      const refuse = (error: GatewayError) => {
        this.#leaveQueue(tenant, waiter)
        done()
        reject(error)
      }
      const go = () => {
        done()
        resolve(this.#enter(tenant))
      }
      const waiter: Waiter = { go, refuse }
      const gone = () => refuse(signal.reason ?? errors.aborted())
      const timer = setTimeout(() => refuse(errors.overloaded()), timerMs(this.#rules.waitMs))
      if (tenant.waiting.push(waiter) === 1) this.#turns.push(tenant)
      this.#waiting++
      this.#metrics.waiting(1)
      signal.listen(gone)
    })
  }

  /** Lets in as many as there are places for, one of each organization in turn. */
  #admit(): void {
    while (this.#running < this.#rules.inFlight) {
      const at = this.#turns.findIndex(tenant => this.#hasShare(tenant))
      if (at < 0) return
      const [tenant] = this.#turns.splice(at, 1)
      const waiter = tenant!.waiting.shift()!
      if (tenant!.waiting.length > 0) this.#turns.push(tenant!)
      waiter.go()
    }
  }

  #leaveQueue(tenant: Tenant, waiter: Waiter): void {
    tenant.waiting.splice(tenant.waiting.indexOf(waiter), 1)
    if (tenant.waiting.length === 0) this.#turns.splice(this.#turns.indexOf(tenant), 1)
    this.#forget(tenant)
  }

  #hasShare(tenant: Tenant): boolean {
    return tenant.running < this.#shareOf(this.#rules.inFlight, tenant.id)
  }

  #shareOf(all: number, id: string): number {
    const other = this.#newest.id === id ? this.#other : this.#newest
    if (this.#now() - other.at > ACTIVE_MS) return all
    return Math.max(1, Math.floor(all * this.#rules.share))
  }

  #saw(id: string): void {
    if (this.#newest.id !== id) this.#other = this.#newest
    this.#newest = { id, at: this.#now() }
  }

  #forget(tenant: Tenant): void {
    const idle = tenant.running === 0 && tenant.waiting.length === 0
    if (idle && this.#tenants.size > MAX_IDLE) this.#tenants.delete(tenant.id)
  }
}
