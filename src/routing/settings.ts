/** The options of the `route` filter (docs/contract.md#routing-score, docs/contract.md#circuits-and-retries). */
import type { CircuitPolicy, History } from '../core/ports.ts'
import { type Infer, s } from '../core/schema.ts'

/** As many minutes as measurements are kept. */
const MAX_MINUTES = 120

const weight = (value: number) => s.default(s.number({ minimum: 0, maximum: 1000 }), value)
const share = (value: number) => s.default(s.number({ minimum: 0, maximum: 1 }), value)
const percent = (value: number) => s.default(s.number({ minimum: 0, maximum: 100 }), value)
const count = (value: number) => s.default(s.integer({ minimum: 0, maximum: 1_000_000 }), value)
const positive = (value: number) => s.default(s.number({ exclusiveMinimum: 0 }), value)
const duration = (value: string) => s.default(s.duration(), value)
const yes = s.default(s.boolean(), true)

/** The schema of the options, with their defaults. */
export const settings = s.object({
  /** Attempts that one request may make. */
  attempts: s.default(s.integer({ minimum: 1, maximum: 10 }), 3),
  /** Models that the id `auto` chooses from, best first. */
  auto: s.default(s.array(s.string()), []),
  /** Models for images. */
  auto_images: s.default(s.array(s.string()), []),
  auto_videos: s.default(s.array(s.string()), []),
  /** Weights in the score of `routing: auto`. */
  weights: s.default(
    s.object({
      price: weight(0.6),
      /** In place of `price`, for models that make images. */
      image_price: weight(1),
      uptime: weight(0.5),
      throughput: weight(0.3),
      /** For streamed answers only. */
      latency: weight(0.075),
      /** For prompts of `cache_prompt_tokens` and more. */
      cache: weight(0),
    }),
    {},
  ),
  thresholds: s.default(
    s.object({
      cache_prompt_tokens: count(5000),
      /** Share of a long prompt that is expected to be cached, and tokens of an answer for each of the prompt. */
      cache_hit_rate: share(0.1),
      cache_output_ratio: share(0.2),
      /** Percent below which a lack of uptime is punished besides. */
      uptime_penalty: percent(95),
      /** In place of what was not measured. */
      default_uptime: percent(100),
      default_latency: duration('1s'),
      default_throughput: positive(50),
      /** Attempts without which uptime counts as not measured. */
      min_requests: count(20),
      /** Percent below which a provider that the model string names is left for another one. */
      low_uptime: percent(90),
      /** Attempts without which it stays. */
      low_uptime_requests: count(5),
    }),
    {},
  ),
  /** How long measurements count, and how much the newest of them. */
  history: s.default(
    s.object({
      window: duration('60m'),
      newest: duration('1m'),
      recent: duration('5m'),
      newest_weight: weight(10),
      recent_weight: weight(3),
      rest_weight: weight(1),
    }),
    {},
  ),
  /** Share of requests that go to a random candidate, so that all are measured. */
  exploration: share(0.01),
  /** The provider that a model's requests stay with. */
  preference: s.default(
    s.object({
      enabled: yes,
      ttl: duration('1h'),
      /** Percent below which it is dropped. */
      uptime: percent(85),
      /** How much better the best score may be. */
      margin: weight(0.15),
    }),
    {},
  ),
  /** The provider that a session's requests stay with. */
  session: s.default(
    s.object({
      enabled: yes,
      ttl: duration('1h'),
      uptime: percent(85),
      /** Whether another provider may answer when the session's fails. */
      failover: yes,
    }),
    {},
  ),
  retry: s.default(
    s.object({
      /** Retries at targets that have just failed, for each request. */
      budget: share(0.2),
      /** Retries that may be made at once. */
      reserve: count(3),
    }),
    {},
  ),
  circuit: s.default(
    s.object({
      /** Failures in a row that open it. */
      failures: s.default(s.integer({ minimum: 1, maximum: 1000 }), 5),
      /** So does more than this share of the last minute's attempts, when they were `min_requests`. */
      ratio: share(0.1),
      min_requests: count(20),
      /** The first opening lasts so long, the nth in a row n times as long. */
      base: duration('30s'),
      max: duration('5m'),
      jitter: share(0.2),
    }),
    {},
  ),
})

/** The validated options: durations in milliseconds, percents as 0 to 100, shares as 0 to 1. */
export type Settings = Infer<typeof settings>

/** In whole minutes; at least the one that runs, `recent` at least `newest`. Equal settings give the same object. */
export function historyOf({ history, thresholds }: Settings): History {
  const minutes = (ms: number) => Math.min(MAX_MINUTES, Math.max(1, Math.round(ms / 60_000)))
  const newest = minutes(history.newest)
  const made = {
    minutes: minutes(history.window),
    newest,
    recent: Math.max(newest, minutes(history.recent)),
    newestWeight: history.newest_weight,
    recentWeight: history.recent_weight,
    restWeight: history.rest_weight,
    usualLatency: thresholds.default_latency,
    usualThroughput: thresholds.default_throughput,
  }
  const key = JSON.stringify(made)
  const known = histories.get(key) ?? made
  histories.set(key, known)
  return known
}

/** Measurements are weighed again for every other history. */
const histories = new Map<string, History>()

/** The part that circuits read; the ratio of failures is left to `Health`. */
export const circuitPolicyOf = ({ circuit: { failures, base, max, jitter } }: Settings): CircuitPolicy => ({
  failures,
  baseMs: base,
  maxMs: max,
  jitter,
})
