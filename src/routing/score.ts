/** How good a candidate is, relative to the best of all: docs/contract.md#routing-score. Lower is better. */
import type { Settings } from './settings.ts'

/** Inputs of a score; undefined for unknown values. */
export interface Facts {
  /** In any unit, the same for all candidates. */
  readonly price: number | undefined
  /** Percent. */
  readonly uptime: number | undefined
  /** Tokens per second. */
  readonly throughput: number | undefined
  /** Milliseconds to the first token. */
  readonly latency: number | undefined
  /** The provider caches prompts. */
  readonly caching: boolean
  readonly priority: number
}

/** The measures that a score compares. */
type Term = 'price' | 'uptime' | 'throughput' | 'latency' | 'cache'
/** How much each measure counts, relative to the others; 0 leaves it out. */
export type Weights = Readonly<Record<Term, number>>

/** The score of one candidate; `total` is the base and both penalties. */
export interface Score {
  /** How much worse than the best candidate, by each measure; 0 is the best itself. */
  readonly terms: Readonly<Record<Term, number>>
  /** Mean of the terms, by weight. */
  readonly base: number
  readonly priorityPenalty: number
  readonly uptimePenalty: number
  readonly total: number
}

const THROUGHPUT_CAP = 3
const PENALTY_SCALE = 5

/** The values of a request's `routing`. */
export const strategies = ['auto', 'price', 'throughput', 'latency'] as const
/** `auto` weighs the measures by the settings; any other value means that measure, and a little uptime. */
export type Strategy = (typeof strategies)[number]

/** Settings of a score besides the measurements. */
export interface Situation {
  readonly strategy: Strategy
  readonly streaming: boolean
  /** The prompt is long enough for caching to matter. */
  readonly long: boolean
  /** The model makes images. */
  readonly image: boolean
}

/** The weights that are active; they need not sum to 1. */
export function weightsFor({ strategy, streaming, long, image }: Situation, { weights }: Settings): Weights {
  if (strategy !== 'auto') {
    const only = strategy === 'latency' && !streaming ? undefined : strategy
    return { price: 0, throughput: 0, latency: 0, cache: 0, ...(only && { [only]: 0.9 }), uptime: 0.1 }
  }
  return {
    price: image ? weights.image_price : weights.price,
    uptime: weights.uptime,
    throughput: weights.throughput,
    latency: streaming ? weights.latency : 0,
    cache: long ? weights.cache : 0,
  }
}

/** One score for each of the candidates, which are compared with each other. */
export function scoresOf(
  candidates: readonly Facts[],
  weights: Weights,
  { thresholds }: Pick<Settings, 'thresholds'>,
): Score[] {
  const { default_uptime, default_throughput, default_latency } = thresholds
  let uptimeOfBest = 0
  let throughputOfBest = 0
  let latencyOfBest = Number.POSITIVE_INFINITY
  for (const facts of candidates) {
    uptimeOfBest = Math.max(uptimeOfBest, facts.uptime ?? default_uptime)
    throughputOfBest = Math.max(throughputOfBest, facts.throughput ?? default_throughput)
    // One millisecond is the resolution of the clock.
    latencyOfBest = Math.min(latencyOfBest, Math.max(1, facts.latency ?? default_latency))
  }
  const prices = priceTerms(candidates)
  return candidates.map((facts, index) => {
    const { uptime = default_uptime, throughput = default_throughput, latency = default_latency } = facts
    const terms = {
      price: prices[index]!,
      uptime: uptime > 0 ? uptimeOfBest / uptime - 1 : 1,
      throughput: throughput > 0 ? Math.min(throughputOfBest / throughput - 1, THROUGHPUT_CAP) : THROUGHPUT_CAP,
      latency: Math.max(1, latency) / latencyOfBest - 1,
      cache: facts.caching ? 0 : 1,
    }
    const base = mean(terms, weights)
    const priorityPenalty = 1 - facts.priority
    const uptimePenalty = penalty(uptime, thresholds.uptime_penalty)
    return { terms, base, priorityPenalty, uptimePenalty, total: base + priorityPenalty + uptimePenalty }
  })
}

/** Without any weight, the price decides. */
function mean(terms: Score['terms'], { price, uptime, throughput, latency, cache }: Weights): number {
  const sum = price + uptime + throughput + latency + cache
  if (sum === 0) return terms.price
  const weighted =
    price * terms.price +
    uptime * terms.uptime +
    throughput * terms.throughput +
    latency * terms.latency +
    cache * terms.cache
  return weighted / sum
}

/** Relative to the cheapest; when that one is free, to the cheapest of the others. What is unknown is the dearest. */
function priceTerms(candidates: readonly Facts[]): number[] {
  let least = Number.POSITIVE_INFINITY
  let leastPaid = Number.POSITIVE_INFINITY
  let most = 0
  for (const { price } of candidates) {
    if (price === undefined) continue
    least = Math.min(least, price)
    if (price > 0) leastPaid = Math.min(leastPaid, price)
    most = Math.max(most, price)
  }
  return candidates.map(({ price = most }) => {
    if (least > 0) return price > 0 ? price / least - 1 : 0
    return price > 0 ? price / leastPaid : 0
  })
}

function penalty(uptime: number, threshold: number): number {
  if (uptime >= threshold) return 0
  return (((threshold - uptime) / threshold) * PENALTY_SCALE) ** 2
}
