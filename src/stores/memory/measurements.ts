/** How offers have done, minute by minute, in this process. */
import { LRUCache } from 'lru-cache'
import type { History, Measured, Measurements, Sample } from '../../core/ports.ts'

const MINUTE_MS = 60_000
/** Minutes that are kept; no history can be longer. */
export const MAX_MINUTES = 120
/** Offers that are remembered; each takes 6 KB. */
const MAX_OFFERS = 2000

/** What is summed for each minute. */
const REQUESTS = 0
const ERRORS = 1
const FIRST_TOKEN_MS = 2
const FIRST_TOKENS = 3
const SPEED = 4
const SPEEDS = 5
const FIELDS = 6

export class MemoryMeasurements implements Measurements {
  readonly #now: () => number
  readonly #series = new LRUCache<string, Series>({ max: MAX_OFFERS })

  /** `now` is a clock in milliseconds, monotonic if possible; while it runs backwards, time stands still. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  add(offer: string, sample: Sample): void {
    let series = this.#series.get(offer)
    if (!series) {
      series = new Series()
      this.#series.set(offer, series)
    }
    series.add(this.#minute(), sample)
  }

  read(offer: string, history: History): Measured | undefined {
    return this.#series.get(offer)?.read(this.#minute(), history)
  }

  #minute(): number {
    return Math.floor(this.#now() / MINUTE_MS)
  }
}

/**
 * The minutes of one offer. All minutes but the one that runs are weighed once a minute, so that a read costs a few
 * additions. Minute number m stands in slot m modulo their count.
 */
class Series implements Measured {
  readonly #sums = new Float64Array(MAX_MINUTES * FIELDS)
  /** The past, weighed by `#weighedFor`. */
  readonly #past = new Float64Array(FIELDS)
  #pastRequests = 0
  #weighedFor: History | undefined
  /** The newest that anything is known of. */
  #minute = -1
  #stale = true

  requests = 0
  uptime: number | undefined = undefined
  latency: number | undefined = undefined
  throughput: number | undefined = undefined
  readonly lately = { requests: 0, errors: 0 }

  add(minute: number, { ok, firstTokenMs, tokensPerSecond }: Sample): void {
    this.#advance(minute)
    const sums = this.#sums
    const at = slotOf(this.#minute)
    if (ok !== undefined) sums[at + REQUESTS]! += 1
    if (ok === false) sums[at + ERRORS]! += 1
    if (firstTokenMs !== undefined && firstTokenMs >= 0) {
      sums[at + FIRST_TOKEN_MS]! += firstTokenMs
      sums[at + FIRST_TOKENS]! += 1
    }
    if (tokensPerSecond !== undefined && tokensPerSecond >= 0 && Number.isFinite(tokensPerSecond)) {
      sums[at + SPEED]! += tokensPerSecond
      sums[at + SPEEDS]! += 1
    }
    this.#stale = true
  }

  read(minute: number, history: History): this {
    this.#advance(minute)
    if (this.#weighedFor !== history) this.#weigh(history)
    if (!this.#stale) return this
    this.#stale = false
    const sums = this.#sums
    const past = this.#past
    const at = slotOf(this.#minute)
    const before = slotOf(this.#minute + MAX_MINUTES - 1)
    const weight = weightOf(0, history)
    const sum = (field: number) => past[field]! + weight * sums[at + field]!
    this.requests = this.#pastRequests + sums[at + REQUESTS]!
    const requests = sum(REQUESTS)
    const firstTokens = sum(FIRST_TOKENS)
    const speeds = sum(SPEEDS)
    this.uptime = requests > 0 ? 100 * (1 - sum(ERRORS) / requests) : undefined
    this.latency = firstTokens > 0 ? sum(FIRST_TOKEN_MS) / firstTokens : undefined
    this.throughput = speeds > 0 ? sum(SPEED) / speeds : undefined
    this.lately.requests = sums[at + REQUESTS]! + sums[before + REQUESTS]!
    this.lately.errors = sums[at + ERRORS]! + sums[before + ERRORS]!
    return this
  }

  /** Makes `minute` the newest; those that were skipped are empty. */
  #advance(minute: number): void {
    if (minute <= this.#minute) return
    const first = Math.max(this.#minute + 1, minute - MAX_MINUTES + 1)
    for (let at = first; at <= minute; at++) this.#sums.fill(0, slotOf(at), slotOf(at) + FIELDS)
    this.#minute = minute
    this.#weighedFor = undefined
  }

  #weigh(history: History): void {
    const past = this.#past.fill(0)
    this.#pastRequests = 0
    for (let age = 1; age < Math.min(history.minutes, MAX_MINUTES); age++) {
      const at = slotOf(this.#minute + MAX_MINUTES - age)
      const weight = weightOf(age, history)
      for (let field = 0; field < FIELDS; field++) past[field]! += weight * this.#sums[at + field]!
      this.#pastRequests += this.#sums[at + REQUESTS]!
    }
    this.#weighedFor = history
    this.#stale = true
  }
}

const slotOf = (minute: number): number => (minute % MAX_MINUTES) * FIELDS

/** Of a minute that began `age` whole minutes ago. */
function weightOf(age: number, { newest, recent, newestWeight, recentWeight, restWeight }: History): number {
  if (age < newest) return newestWeight
  return age < recent ? recentWeight : restWeight
}
