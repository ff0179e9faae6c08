/** Spending over time, by what it went to. */
import { LRUCache } from 'lru-cache'
import type { AdminContext } from '../../admin/context.ts'
import { formatMoney } from '../../core/money.ts'
import {
  addedTotals,
  type GroupTotals,
  type UsageGroup,
  type UsageQuery,
  type UsageStore,
  type UsageTotals,
  usageGroups,
} from '../../core/ports.ts'
import { perObject } from '../../lib/per-object.ts'
import { DAY_MS, HOUR_MS } from '../../lib/period.ts'
import { count, percent, usd } from '../format.ts'
import { type Html, html, link } from '../html.ts'
import { type Content, table, tiles, type Visit } from '../layout.ts'

/** Periods by name: how long, and the span of one bar. One query reads one span. */
const PERIODS = {
  '24h': [DAY_MS, HOUR_MS],
  '7d': [7 * DAY_MS, 6 * HOUR_MS],
  '30d': [30 * DAY_MS, DAY_MS],
  '90d': [90 * DAY_MS, DAY_MS],
} as const
type Period = keyof typeof PERIODS

const MEASURES = { cost: 'USD', requests: 'requests', tokens: 'tokens', errors: 'errors' } as const
type Measure = keyof typeof MEASURES

const NAMES: Partial<Record<UsageGroup, string>> = { api_key: 'key', app: 'source' }
const nameOf = (group: UsageGroup): string => NAMES[group] ?? group.replaceAll('_', ' ')
const groups = usageGroups.filter(group => group !== 'day')

/** Groups that one span reads. */
const MAX_GROUPS = 100
/** Spans that have ended are kept for a time: a chart of 90 days is read once. */
const KEPT_SPANS = 400
const KEPT_MS = 300_000
/** Requests and jobs that end late add to a span until then. */
const LATE_MS = 2 * HOUR_MS
const MAX_TAG_CHARACTERS = 64
/** Groups with a color of their own; the rest are others. */
const MAX_SERIES = 8
const OTHERS = 'others'

/** The options of `name` as the query has them; the first one for anything else. */
const chosen = <T extends string>(query: URLSearchParams, name: string, options: readonly T[]): T =>
  options.find(option => option === query.get(name)) ?? options[0]!

/** Draws a bar for each span, divided by group; and lists the groups. */
export async function spend({ query, context }: Visit): Promise<Content> {
  const by = groupOf(query)
  const period = chosen(query, 'period', ['7d', ...Object.keys(PERIODS)] as readonly Period[])
  const measure = chosen(query, 'measure', Object.keys(MEASURES) as readonly Measure[])
  const scope = await scopeOf(query, context)
  const spans = await read(context, scope, by, period)
  const totals = spans.flatMap(({ groups }) => groups).reduce(added, new Map<string, GroupTotals>())
  const sorted = [...totals.values()].sort((a, b) => measured(b, measure) - measured(a, measure))
  const whole = spans.reduce((sum, { all }) => addedTotals(sum, all), EMPTY)
  const series = sorted.slice(0, MAX_SERIES)
  const values = spans.map(({ groups, all }) => {
    const known = series.map(({ id }) => measured(groups.find(one => one.id === id) ?? EMPTY, measure))
    const rest = measured(all, measure) - known.reduce((sum, value) => sum + value, 0)
    return [...known, Math.max(0, Number(rest.toPrecision(12)))]
  })
  const names = [...series.map(({ id, name }) => name ?? id), OTHERS]
  const present = names.map((_, index) => index).filter(index => values.some(row => row[index]! > 0))
  const chart = {
    unit: MEASURES[measure],
    times: spans.map(({ from }) => from / 1000),
    spanSeconds: spanLength(by, period) / 1000,
    series: present.map(index => ({ name: names[index], values: values.map(row => row[index]) })),
  }
  return {
    title: 'Spend',
    body: html`${choices(query, by, period, measure)}
${tiles([
  ['Spend', usd(formatMoney(whole.cost)), `${usd(formatMoney(whole.creditsCost))} of credits`],
  ['Requests', count(whole.requests), `${count(whole.cached)} from cache`],
  ['Errors', count(whole.errors), percent(whole.errors, whole.requests)],
  [
    'Tokens',
    count(whole.inputTokens + whole.outputTokens),
    `${count(whole.inputTokens)} in, ${count(whole.outputTokens)} out`,
  ],
])}
<h2>${MEASURES[measure]} by ${nameOf(by)}</h2>
<div id="chart" role="img" aria-label="${MEASURES[measure]} over time by ${nameOf(by)}. The figures stand in the tables below." data-chart="${JSON.stringify(chart)}"></div>
${present.length === 0 && html`<p>Nothing to draw: there are no ${MEASURES[measure]} in this period.</p>`}
${groupTable(by, sorted, whole)}
<details><summary>Figures of the chart</summary>
${table(
  'figures',
  'Figures of the chart',
  ['From (UTC)', ...present.map(index => names[index]!)],
  spans.map(({ from }, row) => [
    new Date(from).toISOString().slice(0, 16).replace('T', ' '),
    ...present.map(index => figure(values[row]![index]!, measure)),
  ]),
)}
</details>`,
    styles: ['uplot.css'],
    scripts: ['uplot.js', 'chart.js'],
  }
}

/** `tag` with the name of a tag becomes `tag:NAME`; without one, the groups are models. */
function groupOf(query: URLSearchParams): UsageGroup {
  const tag = query.get('tag')?.trim() ?? ''
  if (query.get('by') === 'tag' && tag !== '') return `tag:${tag.slice(0, MAX_TAG_CHARACTERS)}`
  return chosen(query, 'by', ['model', ...groups] as const)
}

/** Sums of end users and tags are kept by the day. */
const spanLength = (by: UsageGroup, period: Period): number =>
  by === 'end_user' || by.startsWith('tag:') ? DAY_MS : PERIODS[period][1]

async function scopeOf(query: URLSearchParams, { names }: AdminContext): Promise<Partial<UsageQuery>> {
  const given = (name: string) => query.get(name)?.trim() || undefined
  const [organization, project, key] = [given('organization'), given('project'), given('key')]
  return {
    orgId: organization === undefined ? undefined : await names.organization(organization),
    projectId: project === undefined ? undefined : await names.project(project),
    keyId: key === undefined ? undefined : await names.key(key),
  }
}

interface Span {
  readonly from: number
  readonly all: UsageTotals
  readonly groups: readonly GroupTotals[]
}

/** Reads span by span: many short queries hold up requests less than a long one. */
async function read(
  { usage }: AdminContext,
  scope: Partial<UsageQuery>,
  by: UsageGroup,
  period: Period,
): Promise<Span[]> {
  const [length] = PERIODS[period]
  const step = spanLength(by, period)
  const last = Math.floor(Date.now() / step) * step
  const kept = keptOf(usage)
  const spans: Span[] = []
  for (let from = last - length + step; from <= last; from += step) {
    const query = { ...scope, from, to: from + step }
    const key = JSON.stringify([by, query])
    const span = kept.get(key) ?? (await readSpan(usage, query, by))
    if (query.to + LATE_MS < Date.now()) kept.set(key, span)
    spans.push(span)
  }
  return spans
}

/** Groups that are all there is come to the totals, which take as long to read. */
async function readSpan(usage: UsageStore, query: UsageQuery, by: UsageGroup): Promise<Span> {
  const groups = await usage.breakdown(query, by, MAX_GROUPS)
  const all = groups.length < MAX_GROUPS ? groups.reduce(addedTotals, EMPTY) : await usage.totals(query)
  return { from: query.from, all, groups }
}

/** The spans that are kept of a store. */
const keptOf = perObject((_: UsageStore) => new LRUCache<string, Span>({ max: KEPT_SPANS, ttl: KEPT_MS }))

const EMPTY: UsageTotals = {
  requests: 0,
  errors: 0,
  cached: 0,
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  reasoningTokens: 0,
  cost: 0n,
  creditsCost: 0n,
  byokCost: 0n,
  storageCost: 0n,
}

const added = (sums: Map<string, GroupTotals>, one: GroupTotals): Map<string, GroupTotals> =>
  sums.set(one.id, { ...one, ...addedTotals(sums.get(one.id) ?? EMPTY, one) })

function measured(totals: UsageTotals, measure: Measure): number {
  if (measure === 'cost') return Number(formatMoney(totals.cost))
  if (measure === 'tokens') return totals.inputTokens + totals.outputTokens
  return totals[measure]
}

const figure = (value: number, measure: Measure): string => (measure === 'cost' ? usd(String(value)) : count(value))

const select = (name: string, label: string, options: readonly (readonly [string, string])[], value: string): Html =>
  html`<div><label for="s-${name}">${label}</label><select id="s-${name}" name="${name}">${options.map(
    ([option, text]) => html`<option value="${option}"${option === value && html` selected`}>${text}</option>`,
  )}</select></div>`

const choices = (
  query: URLSearchParams,
  by: UsageGroup,
  period: Period,
  measure: Measure,
): Html => html`<form action="/ui/spend" method="get">
<div class="fields">
${select(
  'period',
  'Period',
  Object.keys(PERIODS).map(name => [name, `last ${name}`]),
  period,
)}
${select(
  'by',
  'By',
  [...groups.map((group): [string, string] => [group, nameOf(group)]), ['tag', 'tag (name it)']],
  by.startsWith('tag:') ? 'tag' : by,
)}
<div><label for="s-tag">Name of the tag</label><input type="text" id="s-tag" name="tag" value="${query.get('tag')}" maxlength="${MAX_TAG_CHARACTERS}" autocomplete="off" spellcheck="false"></div>
${select('measure', 'Measure', Object.entries(MEASURES), measure)}
${['organization', 'project', 'key'].map(
  name =>
    html`<div><label for="s-${name}">Only this ${name}</label><input type="text" id="s-${name}" name="${name}" value="${query.get(name)}" autocomplete="off" spellcheck="false"></div>`,
)}
</div>
<p class="row"><button>Show</button> <a href="/ui/spend">All</a></p>
</form>`

/** Names of the filters of the request log by group. */
const FILTERS: Partial<Record<UsageGroup, string>> = {
  model: 'model',
  provider: 'provider',
  api_key: 'key',
  project: 'project',
  end_user: 'endUser',
}

function groupTable(by: UsageGroup, sorted: readonly GroupTotals[], whole: UsageTotals): Html {
  const tag = by.startsWith('tag:') ? `${by.slice('tag:'.length)}=` : ''
  const filter = tag === '' ? FILTERS[by] : 'tag'
  return table(
    'groups',
    `Sums by ${nameOf(by)}`,
    [nameOf(by), 'Cost', 'Share', 'Requests', 'Errors', 'Input tokens', 'Output tokens', 'Cached tokens'],
    sorted
      .slice(0, MAX_GROUPS)
      .map(one => [
        filter === undefined || one.id === 'unknown'
          ? (one.name ?? one.id)
          : html`<a href="${link('/ui/requests', { [filter]: tag + one.id })}">${one.name ?? one.id}</a>`,
        usd(formatMoney(one.cost)),
        percent(Number(one.cost), Number(whole.cost)),
        count(one.requests),
        count(one.errors),
        count(one.inputTokens),
        count(one.outputTokens),
        count(one.cachedTokens),
      ]),
    'No requests in this period.',
  )
}
