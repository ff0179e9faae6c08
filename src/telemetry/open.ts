/** Opens the export of traces and metrics, where a collector is configured: nothing is loaded otherwise. */
import type { OpenTracing, TelemetryContext, TelemetrySettings } from './settings.ts'

/** Returns the target of a signal; undefined where it is off. */
function signalOf({ otlp }: TelemetrySettings, env: TelemetryContext['env'], name: 'traces' | 'metrics') {
  if (!otlp[name]) return undefined
  const { endpoint, headers } = otlp
  if (endpoint !== undefined)
    return { url: `${endpoint.endsWith('/') ? endpoint.slice(0, -1) : endpoint}/v1/${name}`, headers }
  const isGiven =
    env.OTEL_EXPORTER_OTLP_ENDPOINT || env[`OTEL_EXPORTER_OTLP_${name === 'traces' ? 'TRACES' : 'METRICS'}_ENDPOINT`]
  return isGiven ? { url: undefined, headers } : undefined
}

/** Undefined where no collector is configured, or `OTEL_SDK_DISABLED` is `true`. */
export async function openTelemetry(
  settings: TelemetrySettings,
  context: TelemetryContext,
): Promise<OpenTracing | undefined> {
  const { env } = context
  const traces = signalOf(settings, env, 'traces')
  const metrics = signalOf(settings, env, 'metrics')
  if ((!traces && !metrics) || env.OTEL_SDK_DISABLED === 'true') return undefined
  const { startTracing } = await import('./otel.ts')
  return startTracing({ traces, metrics, sample: settings.otlp.sample, content: settings.content }, context)
}
