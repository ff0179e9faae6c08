/** Merges the metrics of several processes into one exposition. */
import { AggregatorRegistry } from 'prom-client'

interface Value {
  /** Name of the line where it differs from the family's. */
  readonly metricName?: string
  readonly labels: Readonly<Partial<Record<string, string | number>>>
  value: number
}
/** A metric in prom-client's JSON form, as processes exchange it. */
export interface MetricFamily {
  readonly name: string
  readonly type: string
  readonly aggregator: string
  readonly values: readonly Value[]
}

/** A value that never decreases. */
const isCounter = ({ type, name }: MetricFamily, { metricName = name }: Value): boolean =>
  type === 'counter' || type === 'histogram' || (type === 'summary' && /_(sum|count)$/.test(metricName))

/**
 * Adds up counters; combines gauges by the family's aggregator: sum, mean, or the value of the first of `processes`.
 * Of quantiles, takes the largest.
 */
export function merge(processes: readonly (readonly MetricFamily[])[]): MetricFamily[] {
  const merged = new Map<string, MetricFamily & { readonly lines: Map<string, Value & { of: number }> }>()
  for (const family of processes.flat()) {
    const { lines } = merged.get(family.name) ?? { lines: new Map() }
    for (const value of family.values) {
      const key = `${value.metricName} ${JSON.stringify(value.labels)}`
      const known = lines.get(key)
      if (known) known.value = combined(known, value, family.aggregator)
      else lines.set(key, { ...value, of: 1 })
    }
    merged.set(family.name, { ...family, ...merged.get(family.name), lines })
  }
  return [...merged.values()].map(({ lines, ...family }) => ({ ...family, values: [...lines.values()] }))
}

/** The counters of a process that ended: without them the sums would decrease. */
export const countersOf = (families: readonly MetricFamily[]): MetricFamily[] =>
  families
    .map(family => ({ ...family, values: family.values.filter(value => isCounter(family, value)) }))
    .filter(({ values }) => values.length > 0)

/** Prometheus' text format. */
export function exposition(families: readonly MetricFamily[]): Promise<string> {
  // Values that must not be added are already those of the first process; here none may be dropped.
  const kept = families.map(family => ({ ...family, aggregator: 'first' }))
  return AggregatorRegistry.aggregate([kept]).metrics()
}

function combined(known: Value & { of: number }, { labels, value }: Value, aggregator: string): number {
  if ('quantile' in labels) return Math.max(known.value, value)
  switch (aggregator) {
    case 'sum':
      return known.value + value
    case 'average':
      known.of++
      return known.value + (value - known.value) / known.of
    case 'min':
      return Math.min(known.value, value)
    case 'max':
      return Math.max(known.value, value)
    default:
      return known.value
  }
}
