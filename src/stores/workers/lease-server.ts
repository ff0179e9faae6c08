/**
 * Counts for all workers. A busy worker gets more units than it needs and spends them locally; unused ones are recalled
 * before any request is refused.
 */
import { atMost } from '../../lib/timer.ts'
import { MemoryCounters } from '../memory/counters.ts'
import { Keyed } from '../memory/keyed.ts'
import { bucketMs, SlidingWindow } from '../memory/window.ts'
import { type Lease, type LeaseClient, type LeaseRequest, type Remainder, systemClock, type Unused } from './lease.ts'

/** Beyond its need a worker gets its share of the rest, divided by this, so that little stays unused. */
const SURPLUS_DIVISOR = 4
/** Time for a worker to return units; later returns still count. */
const RECALL_MS = 250

/** Recalls the unused units of a worker; empty when it has none. Rejects when the worker has ended. */
type Recall = (key: string, windowMs: number) => Promise<Unused | undefined>

/** The counters of the primary; each worker has one `borrower`. */
export class LeaseServer {
  readonly #now: () => number
  readonly #quotas = new Keyed((key, windowMs) => new SharedQuota(key, windowMs))
  /** Places, and units that are not lent. */
  readonly #places: MemoryCounters
  #borrowers = 0

  constructor(now: () => number = systemClock) {
    this.#now = now
    this.#places = new MemoryCounters(now)
  }

  /** The client of one worker. `end` frees its concurrent units; unused units stay counted. */
  borrower(recall: Recall): LeaseClient & { end(): void } {
    const inside = new Map<string, number>()
    const leave = (key: string) => {
      const count = inside.get(key) ?? 0
      if (count === 0) return
      inside.set(key, count - 1)
      if (count === 1) inside.delete(key)
      this.#places.leave(key)
    }
    this.#borrowers++
    return {
      take: request => {
        const quota = this.#quotas.of(request.key, request.windowMs)
        if (request.unused) quota.giveBack(request.unused)
        quota.holders.delete(recall)
        return this.#lend(quota, request, recall)
      },
      peek: ({ key, limit, windowMs }) => {
        const { remaining, resetMs } = this.#places.peek(key, limit, windowMs)
        if (remaining < limit) return { free: remaining, leavesAt: this.#now() + resetMs }
        return this.#left(this.#quotas.of(key, windowMs), limit)
      },
      giveBack: (key, windowMs, unused) => this.#quotas.of(key, windowMs).giveBack(unused),
      enter: (key, limit) => {
        const entered = this.#places.enter(key, limit)
        if (entered) inside.set(key, (inside.get(key) ?? 0) + 1)
        return entered
      },
      leave,
      reserve: ({ key, limit, windowMs, units }) => this.#places.reserveIn(key, limit, windowMs, units),
      correct: ({ key, windowMs, bucket, units }) => this.#places.correct(key, windowMs, bucket, units),
      end: () => {
        this.#borrowers--
        for (const [key, count] of inside) for (let i = 0; i < count; i++) this.#places.leave(key)
        inside.clear()
      },
    }
  }

  #lend(quota: SharedQuota, request: LeaseRequest, recall: Recall): Lease | Promise<Lease> {
    const { limit, need, more } = request
    const { window } = quota
    const now = this.#now()
    const bucket = window.advance(now)
    const free = Math.max(0, limit - window.sum)
    const recalled = free < need && quota.recall(bucket)
    if (recalled) return recalled.then(() => this.#lend(quota, request, recall))
    const spare = Math.min(more, Math.floor((free - need) / (SURPLUS_DIVISOR * this.#borrowers)))
    const units = free < need ? free : need + spare
    // Spare units may be used until the end of their bucket.
    window.add(bucket, units, units > need ? (bucket + 1) * bucketMs(request.windowMs) : now)
    if (units > need) quota.holders.add(recall)
    else if (quota.isBack(bucket)) window.settle(bucket, now)
    return { units, bucket, free: free - units, leavesAt: window.leavesAt }
  }

  #left(quota: SharedQuota, limit: number): Remainder | Promise<Remainder> {
    const { window } = quota
    const bucket = window.advance(this.#now())
    const free = Math.max(0, limit - window.sum)
    const recalled = free === 0 && quota.recall(bucket)
    if (recalled) return recalled.then(() => this.#left(quota, limit))
    return { free, leavesAt: window.sum > 0 ? window.leavesAt : 0 }
  }
}

class SharedQuota {
  readonly window: SlidingWindow
  /** Workers that may have unused units. */
  readonly holders = new Set<Recall>()
  readonly #key: string
  readonly #windowMs: number
  #recalling: Promise<unknown> | undefined
  /** Bucket of the last recall without an answer from every worker. */
  #unanswered = -1

  constructor(key: string, windowMs: number) {
    this.#key = key
    this.#windowMs = windowMs
    this.window = new SlidingWindow(windowMs)
  }

  giveBack({ bucket, units }: Unused): void {
    this.window.remove(bucket, units)
  }

  /** Whether no worker has unused units that may be used in `bucket`. */
  isBack(bucket: number): boolean {
    return this.holders.size === 0 && this.#unanswered !== bucket
  }

  /** Resolves when all unused units are returned; undefined when there are none. `bucket` is the current one. */
  recall(bucket: number): Promise<unknown> | undefined {
    if (this.#recalling) return this.#recalling
    if (this.holders.size === 0) return undefined
    const recalled = [...this.holders]
    // A worker that borrows during the recall is a holder again.
    this.holders.clear()
    const before = this.#unanswered
    this.#unanswered = bucket
    this.#recalling = Promise.all(recalled.map(recall => this.#recall(recall))).then(answered => {
      this.#recalling = undefined
      if (!answered.includes(false)) this.#unanswered = before
    })
    return this.#recalling
  }

  /** Resolves with whether the worker answered. */
  async #recall(recall: Recall): Promise<boolean> {
    // The unused units of a worker that has ended are unknown.
    const back = recall(this.#key, this.#windowMs).then(
      unused => {
        if (unused) this.giveBack(unused)
        return true
      },
      () => false,
    )
    return atMost(RECALL_MS, back, false)
  }
}
