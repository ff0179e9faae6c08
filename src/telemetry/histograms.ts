/**
 * Histograms that are added to in place and read at each export. The library's hash every set of attributes anew, for each
 * value.
 */
import { type Attributes, type HrTime, ValueType } from '@opentelemetry/api'
import { hrTime } from '@opentelemetry/core'
import { emptyResource } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  type CollectionResult,
  DataPointType,
  type Histogram,
  type MetricDescriptor,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics'

/** Sets of attributes of one metric, as the library bounds them. Values of further ones are counted together. */
const MAX_SETS = 2000
const OVERFLOW = 'otel.metric.overflow'

type Counted = Histogram & { count: number; sum: number; min: number; max: number }
interface Point {
  readonly attributes: Attributes
  readonly value: Counted
}

/** A set of attributes: those that every metric has, and a further one. */
type Labels = readonly [operation: string, provider: string, model: string, name?: string, value?: string | undefined]

/** One metric. */
export class Values {
  readonly descriptor: MetricDescriptor
  readonly #bounds: readonly number[]
  #points = new Map<string, Point>()

  constructor(name: string, unit: string, description: string, bounds: readonly number[]) {
    this.descriptor = { name, unit, description, valueType: ValueType.DOUBLE }
    this.#bounds = bounds
  }

  record(number: number, labels: Labels): void {
    const key = labels.join('\0')
    const { value } = this.#points.get(key) ?? this.#added(key, labels)
    value.count++
    value.sum += number
    value.min = Math.min(value.min, number)
    value.max = Math.max(value.max, number)
    let at = 0
    while (at < this.#bounds.length && number > this.#bounds[at]!) at++
    value.buckets.counts[at]!++
  }

  #added(key: string, labels: Labels): Point {
    const isFull = this.#points.size >= MAX_SETS
    const known = isFull ? this.#points.get(OVERFLOW) : undefined
    if (known) return known
    const counts = Array.from({ length: this.#bounds.length + 1 }, () => 0)
    const buckets = { boundaries: [...this.#bounds], counts }
    const value: Counted = { buckets, count: 0, sum: 0, min: Number.POSITIVE_INFINITY, max: Number.NEGATIVE_INFINITY }
    const point = { attributes: isFull ? { [OVERFLOW]: true } : attributesOf(labels), value }
    this.#points.set(isFull ? OVERFLOW : key, point)
    return point
  }

  /** Copies of the points. With `forget`, the next ones begin anew. */
  read(forget: boolean): Point[] {
    const points = [...this.#points.values()]
    if (forget) this.#points = new Map()
    return points.map(({ attributes, value }) => ({
      attributes,
      value: { ...value, buckets: { ...value.buckets, counts: [...value.buckets.counts] } },
    }))
  }
}

function attributesOf([operation, provider, model, name, value]: Labels): Attributes {
  const attributes: Attributes = {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': provider,
    'gen_ai.request.model': model,
  }
  if (name !== undefined && value !== undefined) attributes[name] = value
  return attributes
}

/** Gives metrics to a reader, in the temporality that its exporter chooses. */
export class Histograms implements MetricProducer {
  readonly #scope: { readonly name: string; readonly version: string }
  readonly #temporality: AggregationTemporality
  readonly #all: readonly Values[]
  #since: HrTime = hrTime()

  constructor(scope: { name: string; version: string }, temporality: AggregationTemporality, all: readonly Values[]) {
    this.#scope = scope
    this.#temporality = temporality
    this.#all = all
  }

  async collect(): Promise<CollectionResult> {
    const isDelta = this.#temporality === AggregationTemporality.DELTA
    const [startTime, endTime] = [this.#since, hrTime()]
    if (isDelta) this.#since = endTime
    const metrics = this.#all.flatMap(one => {
      const dataPoints = one.read(isDelta).map(point => ({ ...point, startTime, endTime }))
      if (dataPoints.length === 0) return []
      return {
        descriptor: one.descriptor,
        aggregationTemporality: this.#temporality,
        dataPointType: DataPointType.HISTOGRAM as const,
        dataPoints,
      }
    })
    const scopeMetrics = metrics.length > 0 ? [{ scope: this.#scope, metrics }] : []
    return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] }
  }
}
