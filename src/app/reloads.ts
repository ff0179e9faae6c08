/** Results of loading the configuration. */
import type { ReloadResult } from '../config/manager.ts'
import type { Log } from '../core/ports.ts'
import type { PrometheusMetrics } from '../telemetry/metrics.ts'

/** Records the result of the last load of the configuration, in metrics and log. */
export class Reloads {
  readonly #metrics: PrometheusMetrics
  readonly #log: Log
  readonly startedAt = Date.now()
  last: { ok: boolean; at: number; error?: string; warnings?: readonly string[] } = { ok: true, at: this.startedAt }

  constructor(metrics: PrometheusMetrics, log: Log) {
    this.#metrics = metrics
    this.#log = log
  }

  started(running: string, warnings: readonly string[] = []): void {
    this.#metrics.reload('changed', running, this.startedAt)
    this.last = { ok: true, at: this.startedAt, ...(warnings.length > 0 && { warnings }) }
    this.#warn(warnings)
  }

  note(result: ReloadResult): void {
    const { at, version: running } = result
    const before = this.last
    this.#metrics.reload(result.ok ? (result.changed ? 'changed' : 'unchanged') : 'failed', running, at)
    this.last = result.ok
      ? { ok: true, at, ...(result.warnings.length > 0 && { warnings: result.warnings }) }
      : { ok: false, at, error: String(result.error) }
    if (result.ok) this.#warn(result.warnings.filter(warning => !before.warnings?.includes(warning)))
    if (!result.ok) this.#log.error({ running, error: String(result.error) }, 'configuration rejected')
    else if (result.restartNeeded.length > 0) {
      this.#log.warn({ files: result.restartNeeded }, 'plugins changed; restart needed')
    } else if (result.changed) this.#log.info({ running }, 'configuration loaded')
    else if (!before.ok) this.#log.info({ running }, 'configuration mended; the running one is unchanged')
  }

  #warn(warnings: readonly string[]): void {
    for (const warning of warnings) this.#log.warn({ warning }, 'configuration warning')
  }
}
