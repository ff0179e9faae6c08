/**
 * Counts for all workers. A worker that has much to do gets more than it needs and spends that by itself; what it has
 * left over is asked back before anybody is refused.
 */
import { LRUCache } from 'lru-cache'
import { MemoryCounters } from '../memory/counters.ts'
import { bucketMs, SlidingWindow } from '../memory/window.ts'
import { type Ask, type Lease, type LeaseClient, systemClock, type Unused } from './lease.ts'

const MAX_KEYS = 10_000
/** Beyond its need a worker gets its share of what is left, divided by this: so nobody has much left over. */
const CAUTION = 4
/** How long a worker may take to give back; what it gives back later still counts. */
const RECALL_MS = 250

/** What a worker has left over of a key; empty when it has nothing. Rejects when the worker has ended. */
export type Recall = (key: string, windowMs: number) => Promise<Unused | undefined>

export class LeaseServer {
  readonly #now: () => number
  readonly #quotas = new LRUCache<string, SharedQuota>({ max: MAX_KEYS })
  readonly #places = new MemoryCounters()
  #borrowers = 0

  constructor(now: () => number = systemClock) {
    this.#now = now
  }

  /** For one worker. After `end`, its places are free; units that it had left over stay counted. */
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
      take: ask => {
        const quota = this.#quota(ask.key, ask.windowMs)
        if (ask.unused) quota.giveBack(ask.unused)
        quota.holders.delete(recall)
        return this.#lend(quota, ask, recall)
      },
      giveBack: (key, windowMs, unused) => this.#quota(key, windowMs).giveBack(unused),
      enter: (key, limit) => {
        const entered = this.#places.enter(key, limit)
        if (entered) inside.set(key, (inside.get(key) ?? 0) + 1)
        return entered
      },
      leave,
      end: () => {
        this.#borrowers--
        for (const [key, count] of inside) for (let i = 0; i < count; i++) this.#places.leave(key)
        inside.clear()
      },
    }
  }

  #lend(quota: SharedQuota, ask: Ask, recall: Recall): Lease | Promise<Lease> {
    const { limit, need, more } = ask
    const { window } = quota
    const now = this.#now()
    const bucket = window.advance(now)
    const free = Math.max(0, limit - window.sum)
    const recalled = free < need && quota.recall(bucket)
    if (recalled) return recalled.then(() => this.#lend(quota, ask, recall))
    const spare = Math.min(more, Math.floor((free - need) / (CAUTION * this.#borrowers)))
    const units = free < need ? free : need + spare
    // Spare units may be used up to the end of their bucket.
    window.add(bucket, units, units > need ? (bucket + 1) * bucketMs(ask.windowMs) : now)
    if (units > need) quota.holders.add(recall)
    else if (quota.isBack(bucket)) window.settle(bucket, now)
    return { units, bucket, free: free - units, leavesAt: window.leavesAt }
  }

  #quota(key: string, windowMs: number): SharedQuota {
    const name = `${windowMs} ${key}`
    let quota = this.#quotas.get(name)
    if (!quota) {
      quota = new SharedQuota(key, windowMs)
      this.#quotas.set(name, quota)
    }
    return quota
  }
}

class SharedQuota {
  readonly window: SlidingWindow
  /** Who may have something left over. */
  readonly holders = new Set<Recall>()
  readonly #key: string
  readonly #windowMs: number
  #recalling: Promise<unknown> | undefined
  /** The bucket of the last recall without an answer from every worker. */
  #unanswered = -1

  constructor(key: string, windowMs: number) {
    this.#key = key
    this.#windowMs = windowMs
    this.window = new SlidingWindow(windowMs)
  }

  giveBack({ bucket, units }: Unused): void {
    this.window.remove(bucket, units)
  }

  /** Whether no worker has anything left over that may be used in `bucket`. */
  isBack(bucket: number): boolean {
    return this.holders.size === 0 && this.#unanswered !== bucket
  }

  /** Resolves when all that is left over is back; undefined when there is none. `bucket` is the present one. */
  recall(bucket: number): Promise<unknown> | undefined {
    if (this.#recalling) return this.#recalling
    if (this.holders.size === 0) return undefined
    const recalled = [...this.holders]
    // Who borrows while this is under way is a holder again.
    this.holders.clear()
    const before = this.#unanswered
    this.#unanswered = bucket
    this.#recalling = Promise.all(recalled.map(recall => this.#recall(recall))).then(answered => {
      this.#recalling = undefined
      if (!answered.includes(false)) this.#unanswered = before
    })
    return this.#recalling
  }

  /** Resolves with whether the worker has answered. */
  async #recall(recall: Recall): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<false>(resolve => {
      timer = setTimeout(resolve, RECALL_MS, false)
    })
    // Of a worker that has ended, what it had left over is not known.
    const back = recall(this.#key, this.#windowMs).then(
      unused => {
        if (unused) this.giveBack(unused)
        return true
      },
      () => false,
    )
    const answered = await Promise.race([back, late])
    clearTimeout(timer)
    return answered
  }
}
