/** The files in `deploy`: alerts and board name series that exist, and the tools that read the files accept them. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse } from 'yaml'
import { reportHealth } from '../../src/app/health-metrics.ts'
import type { ProviderHealth, ProviderState } from '../../src/core/ports.ts'
import { Lag } from '../../src/telemetry/load.ts'
import { PrometheusMetrics } from '../../src/telemetry/metrics.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const known = new Set([...read('docs/reference/metrics.md').matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name!))
const seriesIn = (text: string) => [...new Set(text.match(/\bgateway_[a-z_]+/g))]
const isKnown = (name: string) => known.has(name) || known.has(name.replace(/_(?:bucket|sum|count)$/, ''))
const rules = 'deploy/prometheus/rules.yaml'
const board = 'deploy/grafana/gateway.json'

t.test('every series of the alerts and of the board is one of the gateway', async t => {
  for (const path of [rules, 'deploy/prometheus/rules.test.yaml', board]) {
    const named = seriesIn(read(path))
    t.ok(named.length > 5, `${path} names ${named.length} series`)
    t.strictSame(
      named.filter(name => !isKnown(name)),
      [],
      path,
    )
  }
})

t.test('the board is the one that its script writes, with a panel for each series', async t => {
  const written = execFileSync(process.execPath, [join(root, 'build/grafana.js'), '--print'], { encoding: 'utf8' })
  t.equal(read(board), written)
  const named = new Set(seriesIn(written).map(name => name.replace(/_bucket$/, '')))
  t.strictSame(
    [...known].filter(name => !named.has(name)),
    [],
  )
})

t.test('every alert has a severity, a summary, an action and a test', async t => {
  const blocks = read(rules).split('- alert: ').slice(1)
  const tests = read('deploy/prometheus/rules.test.yaml')
  for (const block of blocks) {
    const name = /^\w+/.exec(block)![0]
    for (const part of ['for:', 'severity:', 'summary:', 'action:']) t.ok(block.includes(part), `${name}: ${part}`)
    t.ok(tests.includes(`alertname="${name}"`), `${name} is tested`)
    t.ok(read('docs/telemetry.md').includes(`\`${name}\``), `${name} is documented`)
  }
})

t.test(
  'a provider without a credential, and an engine that never answered, are not down: no alert speaks of them',
  async t => {
    const lag = new Lag()
    t.teardown(() => lag.close())
    const states = new Map<string, ProviderState>([
      ['unused', 'no credential'],
      ['absent', 'no answer'],
      ['engine', 'live'],
      ['refused', 'credential failing'],
    ])
    const metrics = new PrometheusMetrics({ version: '1', lag })
    reportHealth({
      ...{ database: ':memory:', metrics, memory: () => 0, ping: async () => {}, redis: undefined },
      providers: () =>
        [...states].map(([id, status]): ProviderHealth => ({ id, status, credentials: [], offers: 1, broken: [] })),
    })
    const up = async () =>
      [...(await metrics.text()).matchAll(/^gateway_provider_up\{provider="(\w+)"\} (\d)/gm)].map(
        ([, id, value]) => `${id} ${value}`,
      )
    t.strictSame(await up(), ['engine 1', 'refused 0'])
    states.set('engine', 'no answer')
    t.strictSame(await up(), ['engine 0', 'refused 0'], 'an engine that has served is down')
    states.set('refused', 'no credential')
    t.strictSame(await up(), ['engine 0'], 'a credential was removed')
  },
)

const isInstalled = (program: string) =>
  (process.env.PATH ?? '').split(delimiter).some(folder => existsSync(join(folder, program)))

t.test(
  'promtool accepts the alerts, and their tests pass',
  { skip: !isInstalled('promtool') && 'promtool is not installed' },
  async t => {
    const promtool = (...args: string[]) =>
      execFileSync('promtool', args, { cwd: join(root, 'deploy/prometheus'), encoding: 'utf8', stdio: 'pipe' })
    t.match(promtool('check', 'rules', 'rules.yaml'), 'SUCCESS')
    t.match(promtool('test', 'rules', 'rules.test.yaml'), 'SUCCESS')
  },
)

const unit = 'deploy/systemd/model-gateway.service'

t.test('the systemd unit gives a drain its time, and goes on trying to start', async t => {
  const settings = new Map(
    [...read(unit).matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name!, value!] as const),
  )
  const { server } = parse(read('config/gateway.yaml')) as { server: { drain: string; drain_delay: string } }
  const [drain, delay] = [server.drain, server.drain_delay].map(text => Number.parseInt(text, 10))
  t.ok(Number(settings.get('TimeoutStopSec')) >= drain! + delay! + 15)
  t.match(
    settings,
    new Map([
      ['Restart', 'on-failure'],
      ['StartLimitIntervalSec', '0'],
      ['DynamicUser', 'yes'],
      ['StateDirectory', 'model-gateway'],
    ]),
  )
  const script = /\/opt\/model-gateway\/(\S+)/.exec(settings.get('ExecStart')!)![1]!
  t.ok(existsSync(join(root, script)), script)
})

t.test(
  'systemd accepts the unit, and rates its exposure at 1.5 of 10 at most',
  { skip: !isInstalled('systemd-analyze') && 'systemd-analyze is not installed' },
  async t => {
    const args = ['security', '--offline=true', '--threshold=15', '--no-pager', join(root, unit)]
    t.match(execFileSync('systemd-analyze', args, { encoding: 'utf8', stdio: 'pipe' }), /Overall exposure level/)
    t.doesNotThrow(() => execFileSync('systemd-analyze', ['verify', '--man=no', join(root, unit)], { stdio: 'pipe' }))
  },
)
