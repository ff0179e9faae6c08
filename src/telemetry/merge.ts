/** One exposition of several processes: what each of them counts, added up. */
import { AggregatorRegistry } from 'prom-client'

interface Value {
  /** That of the line, where it is not the family's. */
  readonly metricName?: string
  readonly labels: Readonly<Partial<Record<string, string | number>>>
  value: number
}
/** A metric as prom-client tells it in JSON, and as it goes from process to process. */
export interface MetricFamily {
  readonly name: string
  readonly type: string
  readonly aggregator: string
  readonly values: readonly Value[]
}

/** What grows and never falls. */
const isCounter = ({ type, name }: MetricFamily, { metricName = name }: Value): boolean =>
  type === 'counter' || type === 'histogram' || (type === 'summary' && /_(sum|count)$/.test(metricName))

/**
 * Counters are added up; of gauges each family says what becomes of them: their sum, their mean, or what the first of
 * `processes` says. Of quantiles the largest counts.
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

/** Of a process that has ended, what must stay in the sums: they would fall otherwise, which counters never do. */
export const countersOf = (families: readonly MetricFamily[]): MetricFamily[] =>
  families
    .map(family => ({ ...family, values: family.values.filter(value => isCounter(family, value)) }))
    .filter(({ values }) => values.length > 0)

/** Prometheus' text format. */
export function exposition(families: readonly MetricFamily[]): Promise<string> {
  // What must not be added up has been left to the first process; here nothing is to be left out.
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
