/** Metric families over prom-client, cheap to feed from the hot path. */
import { type Aggregator, Counter, Histogram, type Registry, Summary } from 'prom-client'
import type { Lag } from './lag.ts'
import { SERIES_LIMIT, Series } from './series.ts'

const LAG = 'gateway_event_loop_lag_seconds'

export interface Family {
  readonly name: string
  readonly help: string
  /** Labels of closed sets; they survive folding. */
  readonly closed: readonly string[]
  /** Labels that a fold replaces by `other`; they follow the closed ones in `of(...)`. */
  readonly open?: readonly string[]
  /** What becomes of the values of several processes. */
  readonly aggregator?: Aggregator
}

/** One counter series. What is no finite, non-negative number is left out rather than thrown at a request. */
class Count {
  readonly labels: Readonly<Record<string, string>>
  #value = 0

  constructor(names: readonly string[], values: readonly string[]) {
    this.labels = Object.fromEntries(names.map((name, index) => [name, values[index]!]))
  }

  get value(): number {
    return this.#value
  }

  add(by: number): void {
    if (by >= 0 && Number.isFinite(by)) this.#value += by
  }
}

/** Counting is one addition; prom-client is handed the sums when it is scraped. */
export function counter(
  registry: Registry,
  { name, help, closed, open = [], aggregator = 'sum' }: Family,
): Series<Count> {
  const labelNames = [...closed, ...open]
  const series = new Series(values => new Count(labelNames, values), closed.length)
  new Counter({
    name,
    help,
    labelNames,
    aggregator,
    registers: [registry],
    collect() {
      this.reset()
      for (const { labels, value } of series.children) this.inc(labels, value)
    },
  })
  return series
}

/** The children observe seconds; negative ones, which clocks can make, count as 0. */
export function histogram(
  registry: Registry,
  { name, help, closed, open = [], buckets }: Family & { readonly buckets: number[] },
): Series<(seconds: number) => void> {
  const family = new Histogram({ name, help, labelNames: [...closed, ...open], buckets, registers: [registry] })
  const linesEach = buckets.length + 3
  return new Series(
    values => {
      const child = family.labels(...values)
      return seconds => {
        if (Number.isFinite(seconds)) child.observe(Math.max(0, seconds))
      }
    },
    closed.length,
    Math.floor(SERIES_LIMIT / linesEach),
  )
}

/** Quantiles are of the time since the last scrape, 1 being the maximum; `_sum` and `_count` never go back. */
export class LagSummary extends Summary<'quantile'> {
  readonly #lag: Lag

  constructor(registry: Registry, lag: Lag) {
    super({ name: LAG, help: 'How late the event loop ran.', registers: [registry] })
    this.#lag = lag
  }

  override async get() {
    const { p50, p99, max, sum, count } = this.#lag.sample()
    const values = [
      { labels: { quantile: 0.5 }, value: p50 },
      { labels: { quantile: 0.99 }, value: p99 },
      { labels: { quantile: 1 }, value: max },
      { metricName: `${LAG}_sum`, labels: {}, value: sum },
      { metricName: `${LAG}_count`, labels: {}, value: count },
    ]
    return { ...(await super.get()), values }
  }
}
