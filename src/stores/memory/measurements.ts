/** Measurements of offers in this process, per organization. */
import { LRUCache } from 'lru-cache'
import type { History, Measured, Measurements, Sample } from '../../core/ports.ts'
import { MINUTE_MS } from '../../lib/period.ts'
import { FairEntries } from './fair-entries.ts'
import {
  ALL_REQUESTS,
  ERRORS,
  FIRST_TOKEN_MS,
  FIRST_TOKENS,
  LATE_ERRORS,
  LATE_REQUESTS,
  REQUESTS,
  Series,
  SPEED,
  SPEEDS,
} from './series.ts'

export { MAX_MINUTES } from './series.ts'

/** Offers with measurements: of the gateway's providers, and of organizations' own ones. */
const MAX_OFFERS = 1000
const MAX_OWN_OFFERS = 1000
/** Organizations measured separately per offer; all others count as one. */
const MAX_SEPARATE_TENANTS = 6
/** Samples in the current minute at which a mean has a weight of one half. */
const HALF_WEIGHT_SAMPLES = 5
/** Idle minutes after which an organization gives its separate place to another one. */
const IDLE_MINUTES = 10

/**
 * Samples of offers by the minute, for a bounded number of offers: the least recently used are forgotten. Of offers of
 * organizations' own providers, those of an organization above its share are forgotten.
 */
export class MemoryMeasurements implements Measurements {
  readonly #now: () => number
  readonly #offers = new LRUCache<string, Offer>({ max: MAX_OFFERS })
  readonly #ownOffers = new FairEntries<Offer>({ limit: MAX_OWN_OFFERS })

  /** `now`: a clock in milliseconds, monotonic if possible; time stands still while it runs backwards. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  add(offer: string, sample: Sample, org = ''): void {
    const owner = ownerOf(offer)
    let known = this.#find(offer, owner)
    if (!known) {
      known = new Offer()
      if (owner === '') this.#offers.set(offer, known)
      else this.#ownOffers.set(owner, offer, known, 1, Number.POSITIVE_INFINITY)
    }
    known.add(this.#minute(), sample, org)
  }

  read(offer: string, history: History, org: string | null = null): Measured | undefined {
    return this.#find(offer, ownerOf(offer))?.read(this.#minute(), history, org)
  }

  #find(offer: string, owner: string): Offer | undefined {
    return owner === '' ? this.#offers.get(offer) : this.#ownOffers.get(offer)
  }

  #minute(): number {
    return Math.floor(this.#now() / MINUTE_MS)
  }
}

/** Returns the owner in `owner:provider/model`; '' for the gateway's own offers, whose model may contain colons. */
const ownerOf = (offer: string): string => {
  const colon = offer.indexOf(':')
  return colon > 0 && colon < offer.indexOf('/') ? offer.slice(0, colon) : ''
}

/** Measurements of an offer by organization, and their combination for one of them. */
class Offer implements Measured {
  readonly #apart = new Map<string, Series>()
  /** Series of the organizations that are not measured separately. */
  #others: Series | undefined
  /** All series. */
  readonly #all: Series[] = []
  #readFor: string | null = null
  #readWith: History | undefined
  #readAt = -1
  #sum = 0
  #count = 0

  requests = 0
  uptime: number | undefined = undefined
  latency: number | undefined = undefined
  throughput: number | undefined = undefined
  organizations = 0
  #own: Series | undefined

  add(minute: number, sample: Sample, org: string): void {
    this.#seriesOf(org, minute).add(minute, sample)
    this.#readWith = undefined
  }

  read(minute: number, history: History, org: string | null): this {
    if (this.#readWith === history && this.#readFor === org && this.#readAt >= minute) return this
    this.#readWith = history
    this.#readFor = org
    this.#readAt = minute
    const all = this.#all
    // For null, a single organization's series stands for the offer.
    const own = org !== null ? this.#apart.get(org) : all.length === 1 ? all[0] : undefined
    let organizations = 0
    let requests = 0
    for (let at = 0; at < all.length; at++) {
      const series = all[at]!
      series.look(minute, history)
      const its = series.values[ALL_REQUESTS]!
      requests += its
      if (its > 0) organizations++
    }
    const its = own === undefined ? 0 : own.values[ALL_REQUESTS]!
    this.organizations = organizations
    this.requests = organizations - (its > 0 ? 1 : 0) >= 2 ? requests : its
    const { newestWeight, usualLatency, usualThroughput } = history
    this.#join(own, ERRORS, REQUESTS, 0, newestWeight)
    this.uptime = this.#count > 0 ? 100 * (1 - this.#sum / this.#count) : undefined
    this.#join(own, FIRST_TOKEN_MS, FIRST_TOKENS, usualLatency, newestWeight)
    this.latency = this.#count > 0 ? this.#sum / this.#count : undefined
    this.#join(own, SPEED, SPEEDS, usualThroughput, newestWeight)
    this.throughput = this.#count > 0 ? this.#sum / this.#count : undefined
    this.#own = own
    return this
  }

  /** Judges failures only. */
  get lately(): Measured['lately'] {
    this.#join(this.#own, LATE_ERRORS, LATE_REQUESTS, 0, 1)
    return { requests: this.#count, errors: this.#sum }
  }

  /**
   * Combines the sum and count of `own` with the consensus of the others. With samples of at least two others, no mean
   * counts beyond the second highest or lowest. Means of few samples are drawn toward `usual`, and none weighs more
   * than the rest together. An organization's own samples weigh at least one half once there are some. So no
   * organization can shift the measurements of another one.
   */
  #join(own: Series | undefined, sum: number, count: number, usual: number, weight: number): void {
    this.#sum = own === undefined ? 0 : own.values[sum]!
    this.#count = own === undefined ? 0 : own.values[count]!
    const all = this.#all
    if (all.length < (own === undefined ? 2 : 3)) return
    const doubt = HALF_WEIGHT_SAMPLES * Math.max(1, weight)
    const doubted = usual * doubt
    let sources = 0
    let total = 0
    let lowest = usual
    let low = Number.POSITIVE_INFINITY
    let high = Number.NEGATIVE_INFINITY
    let highest = usual
    for (let at = 0; at < all.length; at++) {
      const { values } = all[at]!
      const its = values[count]!
      if (all[at] === own || its === 0) continue
      sources++
      total += its
      const mean = (values[sum]! + doubted) / (its + doubt)
      if (mean <= lowest) {
        low = lowest
        lowest = mean
      } else if (mean < low) low = mean
      if (mean >= highest) {
        high = highest
        highest = mean
      } else if (mean > high) high = mean
    }
    if (sources < 2) return
    let agreed = 0
    let samples = 0
    for (let at = 0; at < all.length; at++) {
      const { values } = all[at]!
      const its = values[count]!
      if (all[at] === own || its === 0) continue
      const counted = Math.min(its, total - its)
      agreed += counted * Math.min(high, Math.max(low, values[sum]! / its))
      samples += counted
    }
    const share = this.#count > 0 ? Math.min(1, Math.max(this.#count, doubt) / samples) : 1
    this.#sum += agreed * share
    this.#count += samples * share
  }

  #seriesOf(org: string, minute: number): Series {
    const known = this.#apart.get(org)
    if (known) return known
    let series: Series | undefined
    if (this.#apart.size < MAX_SEPARATE_TENANTS) series = this.#added()
    else {
      this.#others ??= this.#added()
      series = this.#givenUp(this.#others, minute)
    }
    if (!series) return this.#others!
    this.#apart.set(org, series)
    return series
  }

  #added(): Series {
    const series = new Series()
    this.#all.push(series)
    return series
  }

  /** The place of an organization that no longer makes requests. */
  #givenUp(others: Series, minute: number): Series | undefined {
    for (const [org, series] of this.#apart) {
      if (minute - series.sampledAt < IDLE_MINUTES) continue
      others.absorb(series)
      this.#apart.delete(org)
      return series
    }
    return undefined
  }
}
