/** The log lines of reloads. */
import t from 'tap'
import { Reloads } from '../../src/app/reloads.ts'
import type { Log } from '../../src/core/ports.ts'
import type { PrometheusMetrics } from '../../src/telemetry/metrics.ts'

t.test('a rejected configuration and its mending have a line each, an unchanged one has none', t => {
  const lines: string[] = []
  const write = (level: string) => (_: object, message: string) => void lines.push(`${level} ${message}`)
  const log: Log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  const reloads = new Reloads({ reload() {} } as Partial<PrometheusMetrics> as PrometheusMetrics, log)
  const at = { version: 'v1', at: 0 }
  const unchanged = { ...at, ok: true, changed: false, restartNeeded: [] } as const
  reloads.note(unchanged)
  reloads.note({ ...at, ok: false, error: new Error('line 3') })
  reloads.note(unchanged)
  reloads.note(unchanged)
  reloads.note({ ...unchanged, changed: true })
  t.strictSame(lines, [
    'error configuration rejected',
    'info configuration mended; the running one is unchanged',
    'info configuration loaded',
  ])
  t.end()
})
