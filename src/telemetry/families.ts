/** Metric families over prom-client that are cheap to update on the path of a request. */
import { type Aggregator, Counter, Histogram, type HistogramConfiguration, type Registry, Summary } from 'prom-client'
import type { Lag } from './load.ts'

const LAG = 'gateway_event_loop_lag_seconds'

/** The description of a metric. */
interface Family {
  readonly name: string
  readonly help: string
  /** Labels with a closed set of values; folding keeps them. */
  readonly closed: readonly string[]
  /** Labels that folding replaces by `other`; they follow the closed ones in `of(...)`. */
  readonly open?: readonly string[]
  /** How the values of several processes are combined. */
  readonly aggregator?: Aggregator
}

/** One counter series. Ignores values that are not finite and non-negative instead of throwing into a request. */
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

/** Counting is one addition; prom-client receives the sums at each scrape. */
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

/** One histogram series. */
class Distribution {
  readonly labels: Readonly<Record<string, string>>
  readonly #bounds: readonly number[]
  /** Counts by bucket; the last counts values above all bounds. */
  readonly counts: number[]
  sum = 0

  constructor(names: readonly string[], values: readonly string[], bounds: readonly number[]) {
    this.labels = Object.fromEntries(names.map((name, index) => [name, values[index]!]))
    this.#bounds = bounds
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  /** Negative values, which clock changes can cause, count as 0. */
  observe(given: number): void {
    if (!Number.isFinite(given)) return
    const seconds = Math.max(0, given)
    let at = 0
    while (at < this.#bounds.length && seconds > this.#bounds[at]!) at++
    this.counts[at]!++
    this.sum += seconds
  }
}

/** Replaces prom-client's observing, which joins the labels into a string each time. */
class Distributions extends Histogram {
  readonly #options: HistogramConfiguration<string> & { readonly buckets: number[] }
  readonly #children: () => readonly Distribution[]

  constructor(
    options: HistogramConfiguration<string> & { buckets: number[] },
    children: () => readonly Distribution[],
  ) {
    super(options)
    this.#options = options
    this.#children = children
  }

  /** Both exposition formats read this method; prom-client's types do not declare it. */
  async getForPromString() {
    const { name, help } = this.#options
    return { name, help, type: 'histogram', aggregator: 'sum', values: this.#children().flatMap(this.#lines) }
  }

  readonly #lines = ({ labels, counts, sum }: Distribution) => {
    const { name, buckets } = this.#options
    const line = (suffix: string, value: number, own = {}) => ({
      labels: own,
      sharedLabels: labels,
      value,
      metricName: name + suffix,
    })
    let count = 0
    const upTo = counts.map((more, at) => {
      count += more
      return line('_bucket', count, { le: buckets[at] ?? '+Inf' })
    })
    return [...upTo, line('_sum', sum), line('_count', count)]
  }
}

/** A histogram of seconds. */
export function histogram(
  registry: Registry,
  { name, help, closed, open = [], buckets }: Family & { readonly buckets: number[] },
): Series<Distribution> {
  const labelNames = [...closed, ...open]
  const series = new Series(
    values => new Distribution(labelNames, values, buckets),
    closed.length,
    Math.floor(MAX_SERIES / (buckets.length + 3)),
  )
  new Distributions({ name, help, labelNames, buckets, registers: [registry] }, () => series.children)
  return series
}

/** Quantiles cover the time since the last scrape, 1 is the maximum; `_sum` and `_count` never decrease. */
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

/** Prometheus lines that one metric may have; a histogram's child counts with all of its lines. */
const MAX_SERIES = 2000

const FOLDED = 'other'

interface Node<Child> {
  readonly next: Map<string, Node<Child>>
  child: Child | undefined
}
const node = <Child>(): Node<Child> => ({ next: new Map(), child: undefined })

/**
 * Children of one metric. Above nine tenths of `limit` a new tuple keeps only its first `closed` values and the rest
 * become `other`; above `limit` all become `other`. Client-chosen names therefore cannot add series without end.
 */
class Series<Child> {
  readonly #root: Node<Child> = node()
  readonly #children: Child[] = []
  readonly #make: (values: readonly string[]) => Child
  readonly #closed: number
  readonly #limit: number

  constructor(make: (values: readonly string[]) => Child, closed: number, limit = MAX_SERIES) {
    this.#make = make
    this.#closed = closed
    this.#limit = limit
  }

  get children(): readonly Child[] {
    return this.#children
  }

  of(...values: string[]): Child {
    return this.#find(values) ?? this.#add(values)
  }

  #find(values: readonly string[]): Child | undefined {
    let at = this.#root
    // Runs for each metric of each request: an iterator would allocate one object per label.
    for (let place = 0; place < values.length; place++) {
      const next = at.next.get(values[place]!)
      if (!next) return undefined
      at = next
    }
    return at.child
  }

  #add(values: readonly string[]): Child {
    const size = this.#children.length
    if (size < this.#limit * 0.9) return this.#keep(values)
    const folded = values.map((value, index) => (index < this.#closed && size < this.#limit ? value : FOLDED))
    return this.#find(folded) ?? this.#keep(folded)
  }

  #keep(values: readonly string[]): Child {
    let at = this.#root
    for (const value of values) {
      let next = at.next.get(value)
      if (!next) {
        next = node()
        at.next.set(value, next)
      }
      at = next
    }
    const child = this.#make(values)
    at.child = child
    this.#children.push(child)
    return child
  }
}
