/** The candidates of a request, measured, scored and in order. */
import type { History, Measured, Measurements } from '../core/ports.ts'
import type { Target } from '../core/translator.ts'
import { type Candidate, candidateTargetOf } from './candidate.ts'
import { type RoutingQuery, viewerOf } from './query.ts'
import {
  type Facts,
  type Score,
  type Situation,
  type Strategy,
  scoresOf,
  strategies,
  type Weights,
  weightsFor,
} from './score.ts'
import { historyOf, type Settings } from './settings.ts'

/** A candidate with its targets. */
export interface Group {
  readonly candidate: Candidate
  /** One for each credential, as they are to be tried. */
  readonly targets: readonly Target[]
}

/** A group with what its score was made from. */
export interface Ranked extends Group {
  /** Undefined while nothing is known of it. */
  readonly measured: Measured | undefined
  readonly facts: Facts
  readonly score: Score
}

/** The targets by candidate, in the order in which they come. */
export function groupsOf(targets: readonly Target[]): Group[] {
  const groups: { candidate: Candidate; targets: Target[] }[] = []
  for (const target of targets) {
    const { candidate } = candidateTargetOf(target)
    const group = groups.find(known => known.candidate === candidate)
    if (group) group.targets.push(target)
    else groups.push({ candidate, targets: [target] })
  }
  return groups
}

/** The request's `routing`, or `auto`. */
export const strategyOf = ({ request }: RoutingQuery): Strategy => request.routing ?? 'auto'

/** Scores candidates by the settings of one snapshot and the measurements of the process. */
export class Ranking {
  readonly #settings: Settings
  readonly #measurements: Measurements
  readonly #history: History
  /** Weights by situation. */
  readonly #weights: Weights[] = []

  constructor(settings: Settings, measurements: Measurements) {
    this.#settings = settings
    this.#measurements = measurements
    this.#history = historyOf(settings)
  }

  /** Models keep their order; the candidates of each go by their score, and equal ones as they came. */
  rank(query: RoutingQuery, groups: readonly Group[], session: boolean): Ranked[] {
    const { promptTokens } = query
    const long = promptTokens >= this.#settings.thresholds.cache_prompt_tokens
    const ranked: Ranked[] = []
    for (let from = 0, to = 0; from < groups.length; from = to) {
      const { mapping, image } = groups[from]!.candidate
      while (to < groups.length && groups[to]!.candidate.mapping.model === mapping.model) to++
      const weights = this.#weightsFor({ strategy: strategyOf(query), streaming: query.streaming, long, image })
      for (const one of this.#scored(groups, from, to, weights, query, long || session)) ranked.push(one)
    }
    return ranked
  }

  /** The groups from `from` to before `to`. */
  #scored(
    groups: readonly Group[],
    from: number,
    to: number,
    weights: Weights,
    query: RoutingQuery,
    cached: boolean,
  ): Ranked[] {
    const { promptTokens } = query
    const org = viewerOf(query)
    const measured: (Measured | undefined)[] = []
    const facts: Facts[] = []
    for (let index = from; index < to; index++) {
      const { candidate } = groups[index]!
      const known = this.read(candidate, org)
      measured.push(known)
      facts.push({
        price: priceOf(candidate, promptTokens, cached, this.#settings),
        uptime: this.uptime(known),
        throughput: known?.throughput,
        latency: known?.latency,
        caching: candidate.mapping.supports.has('prompt_cache'),
        priority: candidate.mapping.provider.priority,
      })
    }
    // Written out: objects that are spread together cost microseconds.
    return scoresOf(facts, weights, this.#settings)
      .map((score, index) => {
        const { candidate, targets } = groups[from + index]!
        return { candidate, targets, measured: measured[index], facts: facts[index]!, score }
      })
      .sort((a, b) => a.score.total - b.score.total)
  }

  #weightsFor(situation: Situation): Weights {
    const { strategy, streaming, long, image } = situation
    const at = strategies.indexOf(strategy) * 8 + (streaming ? 4 : 0) + (long ? 2 : 0) + (image ? 1 : 0)
    this.#weights[at] ??= weightsFor(situation, this.#settings)
    return this.#weights[at]!
  }

  read(candidate: Candidate, org: string | null): Measured | undefined {
    return this.#measurements.read(candidate.key, this.#history, org)
  }

  /** Percent; undefined while there are fewer attempts than `least`. */
  uptime(measured: Measured | undefined, least: number = this.#settings.thresholds.min_requests): number | undefined {
    return measured && measured.requests >= least ? measured.uptime : undefined
  }
}

/**
 * In pico-USD per token, or per image. `cached`: a part of the prompt is expected to be read from the provider's
 * cache. Undefined when unknown.
 */
export function priceOf(
  { rates, image }: Candidate,
  promptTokens: number,
  cached: boolean,
  { thresholds }: Pick<Settings, 'thresholds'>,
): number | undefined {
  let rate = rates[0]!
  for (const tier of rates) if (promptTokens > tier.above) rate = tier
  const { input, output = 0 } = rate
  if (input === undefined) return undefined
  if (image) return input
  if (!cached) return (input + output) / 2
  const { cache_hit_rate: hit, cache_output_ratio: ratio } = thresholds
  return ((rate.cached ?? input) * hit + input * (1 - hit) + output * ratio) / 2
}
