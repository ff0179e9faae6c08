/** Histograms that OTLP sends: sums in place, in the temporality of the exporter, bounded. */
import { AggregationTemporality, DataPointType } from '@opentelemetry/sdk-metrics'
import t from 'tap'
import { Histograms, Values } from '../../src/telemetry/histograms.ts'

const pointsOf = async (histograms: Histograms) => {
  const { resourceMetrics, errors } = await histograms.collect()
  t.strictSame(errors, [])
  return resourceMetrics.scopeMetrics.flatMap(({ metrics }) =>
    metrics.flatMap(one => (one.dataPointType === DataPointType.HISTOGRAM ? one.dataPoints : [])),
  )
}
const started = (temporality: AggregationTemporality) => {
  const values = new Values('name', 's', 'Time.', [1, 2])
  return { values, histograms: new Histograms({ name: 'gateway', version: '1' }, temporality, [values]) }
}

t.test('values are counted by bucket, whose bounds belong to it', async t => {
  const { values, histograms } = started(AggregationTemporality.CUMULATIVE)
  t.strictSame(await pointsOf(histograms), [], 'nothing is sent before the first value')
  for (const value of [0.5, 1, 1.5, 2, 9]) values.record(value, ['chat', 'a', 'm', 'error.type', undefined])
  values.record(3, ['chat', 'a', 'm', 'error.type', 'timeout'])
  const expected = { count: 5, sum: 14, min: 0.5, max: 9, buckets: { boundaries: [1, 2], counts: [2, 2, 1] } }
  const labels = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'a', 'gen_ai.request.model': 'm' }
  const points = await pointsOf(histograms)
  t.match(points, [
    { attributes: labels, value: expected },
    { attributes: { ...labels, 'error.type': 'timeout' }, value: { count: 1 } },
  ])
  t.notOk('error.type' in points[0]!.attributes)
  values.record(1, ['chat', 'a', 'm', 'error.type', undefined])
  t.match(points[0]!.value, { count: 5 }, 'what was read does not change')
  t.match((await pointsOf(histograms))[0], { value: { count: 6 } }, 'cumulative sums go on')
})

t.test('delta sums begin anew at each export', async t => {
  const { values, histograms } = started(AggregationTemporality.DELTA)
  values.record(1, ['chat', 'a', 'm'])
  const { resourceMetrics } = await histograms.collect()
  t.match(resourceMetrics.scopeMetrics[0]!.metrics[0], {
    aggregationTemporality: AggregationTemporality.DELTA,
    dataPointType: DataPointType.HISTOGRAM,
    descriptor: { name: 'name', unit: 's' },
  })
  t.strictSame(await pointsOf(histograms), [])
})

t.test('sets of attributes beyond 2,000 are counted together', async t => {
  const { values, histograms } = started(AggregationTemporality.CUMULATIVE)
  for (let model = 0; model < 2500; model++) values.record(1, ['chat', 'a', `m${model}`])
  const points = await pointsOf(histograms)
  t.equal(points.length, 2001)
  t.match(points.at(-1), { attributes: { 'otel.metric.overflow': true }, value: { count: 500 } })
})
