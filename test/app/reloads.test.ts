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
  const unchanged = { ...at, ok: true, changed: false, restartNeeded: [], warnings: [] } as const
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

t.test('a missing credential has a line when it is new, and stands in the status while it lasts', t => {
  const lines: object[] = []
  const log: Log = { debug() {}, info() {}, error() {}, warn: fields => void lines.push(fields) }
  const reloads = new Reloads({ reload() {} } as Partial<PrometheusMetrics> as PrometheusMetrics, log)
  const at = { version: 'v1', at: 0, ok: true, changed: false, restartNeeded: [] } as const
  reloads.started('v1', ['one'])
  reloads.note({ ...at, warnings: ['one', 'two'] })
  t.strictSame(lines, [{ warning: 'one' }, { warning: 'two' }])
  t.strictSame(reloads.last.warnings, ['one', 'two'])
  reloads.note({ ...at, warnings: [] })
  t.equal(reloads.last.warnings, undefined)
  t.end()
})
