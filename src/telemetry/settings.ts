/** Settings of the export of traces and metrics, and what it needs of the process. */
import type { Log, Tracing } from '../core/ports.ts'

/** `telemetry:` of `gateway.yaml`, with defaults. */
export interface TelemetrySettings {
  readonly otlp: {
    readonly endpoint?: string | undefined
    readonly headers: Readonly<Record<string, string>>
    readonly traces: boolean
    readonly metrics: boolean
    readonly sample: number
  }
  readonly content: boolean
}

export interface TelemetryContext {
  readonly version: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
}

/** Tracing whose queues are sent, as far as that works at once, when it is closed. */
export interface OpenTracing extends Tracing {
  close(): Promise<void>
}

/** Where one signal goes; without an address, the exporter reads the standard variables. */
export interface Signal {
  readonly url: string | undefined
  readonly headers: Readonly<Record<string, string>>
}
