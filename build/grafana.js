/**
 * Writes the Grafana board `deploy/grafana/gateway.json`: one panel for each series of docs/reference/metrics.md.
 * `--print` prints it instead. `npm run schemas` runs it.
 */
import { readFileSync, writeFileSync } from 'node:fs'

const root = new URL('../', import.meta.url)
const target = new URL('deploy/grafana/gateway.json', root)
const datasource = { type: 'prometheus', uid: '$datasource' }
const WIDTH = 12
const HEIGHT = 8

/** Rows of the board, and the series that each begins with; the first that fits has a series. */
const groups = [
  ['Requests', /^gateway_(?:requests?|time_to|overhead|filter)/],
  ['Spend', /^gateway_(?:cost|tokens|unpriced|overdraft)/],
  ['Providers', /^gateway_(?:provider|attempts|circuits|credentials|retry)/],
  ['Process and stores', /_(?:lag|heap|spool|disk|database|redis|connections|config|build)/],
  ['Features', /^/],
]

const series = () =>
  [...readFileSync(new URL('docs/reference/metrics.md', root), 'utf8').matchAll(/^\| `(\w+)` \| (.*) \|$/gm)].map(
    ([, name, rest]) => {
      const [type, labels, meaning] = rest.split(' | ')
      return { name, type: type.trim(), labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label), meaning }
    },
  )

/** A graph stays readable with one label: the first of these that a series has. */
const shown = ['model', 'provider', 'outcome', 'code', 'state', 'kind']
const byLabel = labels => shown.find(label => labels.includes(label)) ?? labels[0]

/** @returns {[expression: string, legend: string][]} */
function queries({ name, type, labels }) {
  const label = byLabel(labels)
  const by = label ? ` by (${label})` : ''
  const legend = label ? `{{${label}}}` : name
  if (type === 'counter') return [[`sum${by} (rate(${name}[$__rate_interval]))`, legend]]
  if (type === 'summary') return [[`max by (quantile) (${name})`, '{{quantile}}']]
  if (type !== 'histogram') return [[`max${by} (${name})`, legend]]
  const buckets = `sum by (${['le', label].filter(Boolean).join(', ')}) (rate(${name}_bucket[$__rate_interval]))`
  return [0.5, 0.95].map(share => [`histogram_quantile(${share}, ${buckets})`, `${legend} p${share * 100}`])
}

function unitOf({ name, type }) {
  if (type === 'gauge' && name.endsWith('_last_success_seconds')) return 'dateTimeFromNow'
  if (name.includes('_usd')) return 'currencyUSD'
  if (name.endsWith('_seconds')) return 's'
  if (name.endsWith('_bytes')) return 'bytes'
  if (name.endsWith('_ratio')) return 'percentunit'
  return type === 'counter' ? 'ops' : 'short'
}

const panel = (one, id, gridPos) => ({
  id,
  type: 'timeseries',
  title: one.name.replace(/^gateway_/, '').replaceAll('_', ' '),
  description: one.meaning,
  datasource,
  gridPos,
  fieldConfig: { defaults: { unit: unitOf(one), min: 0 }, overrides: [] },
  targets: queries(one).map(([expr, legendFormat], at) => ({
    refId: String.fromCharCode(65 + at),
    datasource,
    expr,
    legendFormat,
  })),
})

function board() {
  const panels = []
  const all = grouped(series())
  let y = 0
  for (const [title] of groups) {
    panels.push({ id: panels.length + 1, type: 'row', title, collapsed: false, gridPos: { h: 1, w: 24, x: 0, y } })
    const members = all.get(title) ?? []
    for (const [at, one] of members.entries()) {
      const gridPos = { h: HEIGHT, w: WIDTH, x: (at % 2) * WIDTH, y: y + 1 + Math.floor(at / 2) * HEIGHT }
      panels.push(panel(one, panels.length + 1, gridPos))
    }
    y += 1 + Math.ceil(members.length / 2) * HEIGHT
  }
  return {
    uid: 'model-gateway',
    title: 'Model Gateway',
    tags: ['model-gateway'],
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: { list: [{ name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' }] },
    panels,
  }
}

const groupOf = ({ name }) => groups.find(([, pattern]) => pattern.test(name))[0]

function grouped(all) {
  const found = new Map()
  for (const one of all) found.set(groupOf(one), [...(found.get(groupOf(one)) ?? []), one])
  return found
}

const text = `${JSON.stringify(board(), null, 2)}\n`
if (process.argv.includes('--print')) process.stdout.write(text)
else writeFileSync(target, text)
