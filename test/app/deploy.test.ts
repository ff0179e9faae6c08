/** The alerts and the board in `deploy`: they name series that exist, and promtool accepts them. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

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

const isInstalled = (process.env.PATH ?? '').split(delimiter).some(folder => existsSync(join(folder, 'promtool')))

t.test(
  'promtool accepts the alerts, and their tests pass',
  { skip: !isInstalled && 'promtool is not installed' },
  async t => {
    const promtool = (...args: string[]) =>
      execFileSync('promtool', args, { cwd: join(root, 'deploy/prometheus'), encoding: 'utf8', stdio: 'pipe' })
    t.match(promtool('check', 'rules', 'rules.yaml'), 'SUCCESS')
    t.match(promtool('test', 'rules', 'rules.test.yaml'), 'SUCCESS')
  },
)
