/** Sends traces and metrics by OTLP over HTTP. Queues are bounded; what a collector does not take is dropped. */
import { randomUUID } from 'node:crypto'
import { setGlobalErrorHandler } from '@opentelemetry/core'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { InstrumentType, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-base'
import type { Log } from '../core/ports.ts'
import { atMost } from '../lib/timer.ts'
import { genAiMetrics } from './genai.ts'
import { Histograms, type Values } from './histograms.ts'
import type { OpenTracing, Signal, TelemetryContext } from './settings.ts'
import { spanExporter } from './spans.ts'
import { Traces } from './traces.ts'

const NAME = 'model-gateway'
/** Time limit of one export. */
const EXPORT_MS = 5_000
/** Time that a stop waits for the last export. */
const CLOSE_MS = 2_000
/** Time between two log lines about failed exports. */
const WARN_MS = 60_000

interface Settings {
  readonly traces: Signal | undefined
  readonly metrics: Signal | undefined
  readonly sample: number
  readonly content: boolean
}

/** Starts what is configured. Without `traces`, requests have no ids and providers get no headers. */
export function startTracing(settings: Settings, { version, env, log }: TelemetryContext): OpenTracing {
  setGlobalErrorHandler(warnings(log))
  const given = detectResources({ detectors: [envDetector] })
  const resource = defaultResource()
    .merge(
      resourceFromAttributes({ 'service.name': NAME, 'service.version': version, 'service.instance.id': randomUUID() }),
    )
    .merge(given)
  const metersOf = (config: ReturnType<typeof exporterOf>, all: readonly Values[]) => {
    const exporter = new OTLPMetricExporter(config)
    const temporality = exporter.selectAggregationTemporality(InstrumentType.HISTOGRAM)
    const metricProducers = [new Histograms({ name: NAME, version }, temporality, all)]
    return new MeterProvider({
      resource,
      readers: [new PeriodicExportingMetricReader({ exporter, metricProducers, ...intervalOf(env) })],
    })
  }
  const spans =
    settings.traces &&
    new BatchSpanProcessor(spanExporter(exporterOf(settings.traces), resource, { name: NAME, version }), {
      exportTimeoutMillis: EXPORT_MS,
    })
  const { all, measure } = genAiMetrics()
  const meters = settings.metrics && metersOf(exporterOf(settings.metrics), all)
  const sampler = settings.sample < 1 ? new TraceIdRatioBasedSampler(settings.sample) : undefined
  const traces = new Traces(spans && { sampler, send: span => spans.onEnd(span) }, settings.content)
  return {
    began: ex => traces.began(ex),
    failed: (ex, error) => traces.failed(ex, error),
    ids: ex => traces.ids(ex),
    ended(ex) {
      traces.ended(ex)
      if (meters) measure(ex)
    },
    async close() {
      await atMost(CLOSE_MS, Promise.allSettled([spans?.shutdown(), meters?.shutdown()]), undefined)
    },
  }
}

const exporterOf = ({ url, headers }: Signal) =>
  url === undefined ? { headers: { ...headers } } : { url, headers: { ...headers }, timeoutMillis: EXPORT_MS }

/** An export may not take longer than the time between two of them. */
function intervalOf({ OTEL_METRIC_EXPORT_INTERVAL }: TelemetryContext['env']) {
  const given = Number(OTEL_METRIC_EXPORT_INTERVAL)
  const exportIntervalMillis = Number.isInteger(given) && given > 0 ? given : 60_000
  return { exportIntervalMillis, exportTimeoutMillis: Math.min(EXPORT_MS, exportIntervalMillis) }
}

function warnings(log: Log): (thrown: unknown) => void {
  let warnedAt = Number.NEGATIVE_INFINITY
  return thrown => {
    const now = performance.now()
    if (now - warnedAt < WARN_MS) return
    warnedAt = now
    log.warn({ error: thrown instanceof Error ? thrown.message : String(thrown) }, 'telemetry export failed')
  }
}
