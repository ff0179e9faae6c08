/** The request log: a list with filters, and one request with its attempts. */
import { commands } from '../../admin/commands/index.ts'
import type { RequestDetails, ShownRequest } from '../../admin/commands/requests.ts'
import type { AttemptRecord } from '../../core/ports.ts'
import { GatewayError } from '../../lib/error.ts'
import { count, milliseconds, time, usd } from '../format.ts'
import { argumentsOf, fieldsOf, inputs } from '../forms.ts'
import { type Html, html, link } from '../html.ts'
import { type Content, facts, live, mark, run, table, tiles, type Visit } from '../layout.ts'
import { namesOf } from '../names.ts'

const ROWS_PER_PAGE = 50
/** Parts that one page looks at, each of a bounded number of rows. */
const MAX_PARTS = 10
const UPDATE_SECONDS = 5

/** Lists requests, the newest first. */
export async function requests({ query, context }: Visit): Promise<Content> {
  const fields = fieldsOf(commands['requests.list']!)
  const filter = argumentsOf(fields, query)
  const given = Object.fromEntries([...query].filter(([name, value]) => Object.hasOwn(filter, name) && value !== ''))
  const before = query.get('before') || undefined
  const isLive = query.get('live') === '1' && before === undefined
  const { rows, next, error } = await found()
  const names = await namesOf(rows, context)
  const older = next !== null && link('/ui/requests', { ...given, before: next })
  const list = html`${error !== undefined && html`<p role="alert">${error}</p>`}
${error === undefined && rowTable(rows, names)}
<p class="row">${before !== undefined && html`<a href="${link('/ui/requests', given)}">Newest</a>`}
${older && html`<a id="older" rel="next" href="${older}">Older</a>`}
${rows.length < ROWS_PER_PAGE && older && html`<span class="hint">More rows may match further back.</span>`}</p>`
  return {
    title: 'Requests',
    body: html`<details${Object.keys(given).length > 0 && html` open`}><summary>Filters</summary>
<form action="/ui/requests" method="get">
${inputs(fields, query)}
<p class="row"><button>Show</button> <a href="/ui/requests">All requests</a></p>
</form></details>
${before === undefined ? live(isLive, UPDATE_SECONDS, '/ui/requests', given, list) : list}`,
    scripts: ['htmx.js'],
  }

  /** A filter that is refused is shown with the form, so that it can be corrected. */
  async function found(): Promise<Found> {
    try {
      return await find(filter, before)
    } catch (thrown) {
      if (thrown instanceof GatewayError && thrown.status < 500) return { rows: [], next: null, error: thrown.message }
      throw thrown
    }
  }

  async function find(filter: object, from: string | undefined): Promise<Found> {
    const rows: ShownRequest[] = []
    let next: string | null = from ?? null
    for (let part = 0; part < MAX_PARTS && rows.length < ROWS_PER_PAGE && (part === 0 || next !== null); part++) {
      const args = { ...filter, limit: ROWS_PER_PAGE - rows.length, ...(next !== null && { before: next }) }
      const page = await run<{ rows: ShownRequest[]; next: string | null }>(context, 'requests.list', args)
      rows.push(...page.rows)
      next = page.next
    }
    return { rows, next }
  }
}

/** Rows of one page, and the position of the next one; or why the filter is refused. */
interface Found {
  readonly rows: readonly ShownRequest[]
  readonly next: string | null
  readonly error?: string
}

const statusMark = ({ status, outcome }: Pick<ShownRequest, 'status' | 'outcome'>): Html =>
  mark(
    outcome === 'ok' ? 'good' : outcome === 'aborted' ? 'warn' : 'bad',
    outcome === 'ok' ? status : `${status} ${outcome}`,
  )

/** Tokens in and out. */
const tokens = ({ prompt, completion }: ShownRequest['usage']): string =>
  prompt === undefined && completion === undefined ? '' : `${count(prompt ?? 0)} + ${count(completion ?? 0)}`

const rowTable = (rows: readonly ShownRequest[], names: ReadonlyMap<string, string>): Html =>
  table(
    'requests',
    'Requests',
    'Time (UTC), Status, Model, Provider, First token, Took, Tokens, Cost, Error, Project, Key, End user',
    rows.map(row => [
      html`<a id="r-${row.id}" href="/ui/requests/${encodeURIComponent(row.id)}">${time(row.at)}</a>`,
      statusMark(row),
      row.used_model === null || row.used_model === row.requested_model
        ? row.requested_model
        : `${row.requested_model} → ${row.used_model}`,
      html`${row.used_provider}${row.cached && ' (cache)'}`,
      milliseconds(row.ttft_ms),
      milliseconds(row.duration_ms),
      tokens(row.usage),
      usd(row.cost),
      row.error_code,
      html`<a href="${link('/ui/requests', { project: row.project })}">${names.get(row.project) ?? row.project}</a>`,
      html`<a href="${link('/ui/requests', { key: row.key })}">${names.get(row.key) ?? row.key}</a>`,
      row.end_user,
    ]),
    'No request matches.',
  )

/** Shows one request: what it cost, and when each attempt began, answered and ended. */
export async function request({ id, context }: Visit): Promise<Content> {
  const row = await run<RequestDetails>(context, 'requests.show', { id })
  const { attempts, usage, tags, ...rest } = row
  const names = await namesOf([row], context)
  /** An id with its name, if it has one. */
  const named = (value: unknown): string => {
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
    const name = names.get(text)
    return name === undefined ? text : `${name} (${text})`
  }
  const isShown = (value: unknown) => value !== null && value !== undefined && value !== ''
  return {
    title: `Request ${row.id}`,
    body: html`<p><a href="/ui/requests">All requests</a></p>
${tiles([
  ['Status', statusMark(row), row.error_code],
  ['Took', milliseconds(row.duration_ms), `first token ${milliseconds(row.ttft_ms)}`],
  ['Cost', usd(row.cost), `held ${usd(row.held)}`],
  ['Attempts', attempts.length, row.cached ? 'answered from cache' : ''],
])}
<h2>Attempts</h2>
${attempts.length > 0 && timeline(attempts, row.duration_ms)}
${attemptTable(attempts)}
<h2>Usage</h2>
${facts([...Object.entries(usage).map(([axis, amount]) => [axis.replaceAll('_', ' '), amount] as const), ['cost USD', row.cost], ['held USD', row.held]])}
<h2>Facts</h2>
${facts([
  ...Object.entries(rest)
    .filter(([, value]) => isShown(value))
    .map(([name, value]) => [name.replaceAll('_', ' '), named(value)] as const),
  [
    'tags',
    Object.entries(tags)
      .map(([name, value]) => `${name}=${value}`)
      .join(', '),
  ],
])}`,
  }
}

const attemptTable = (attempts: readonly AttemptRecord[]): Html =>
  table(
    'attempts',
    'Attempts',
    '#, Provider, Model, Status, Started at, Connect, First token, Took, Credential, Why the next was tried',
    attempts.map((one, index) => [
      index + 1,
      one.provider,
      one.model,
      one.reason === null ? mark('good', one.status) : mark('bad', one.status === 0 ? 'no answer' : one.status),
      milliseconds(one.started_ms),
      milliseconds(one.connect_ms),
      milliseconds(one.ttft_ms),
      milliseconds(one.duration_ms),
      one.credential && html`<code>${one.credential}</code>`,
      one.reason !== null && [...new Set([one.reason, one.error_type])].join(', '),
    ]),
    'No provider was called.',
  )

const CHART_WIDTH_PX = 720
const LINE = 26
const LABEL = 180

/** A bar for each attempt, from its start to its end; the paler part is the wait for the first token. */
function timeline(attempts: readonly AttemptRecord[], totalMs: number): Html {
  const end = Math.max(1, totalMs, ...attempts.map(one => one.started_ms + one.duration_ms))
  const scaled = (ms: number) => Math.round((ms / end) * (CHART_WIDTH_PX - LABEL) * 10) / 10
  const height = attempts.length * LINE + 20
  const told = attempts
    .map(one => `${one.provider} from ${milliseconds(one.started_ms)}, for ${milliseconds(one.duration_ms)}`)
    .join('; ')
  return html`<div class="scroll" role="region" aria-label="Timeline" tabindex="0"><svg role="img" aria-label="${told}" viewBox="0 0 ${CHART_WIDTH_PX} ${height}" width="${CHART_WIDTH_PX}" height="${height}">
${attempts.map((one, index) => {
  const [x, y] = [LABEL + scaled(one.started_ms), index * LINE]
  const wait = Math.min(one.ttft_ms ?? 0, one.duration_ms)
  const kind = one.reason === null ? 'bar' : 'failed'
  return html`<text x="0" y="${y + 16}">${one.provider.slice(0, 24)}</text><rect class="${kind}" x="${x}" y="${y + 4}" width="${Math.max(2, scaled(one.duration_ms))}" height="${LINE - 8}"/>${wait > 0 && html`<rect class="wait" x="${x}" y="${y + 4}" width="${scaled(wait)}" height="${LINE - 8}"/>`}
`
})}<path class="axis" d="M${LABEL} ${height - 18}H${CHART_WIDTH_PX}"/>
<text x="${LABEL}" y="${height - 4}">0</text><text x="${CHART_WIDTH_PX}" y="${height - 4}" text-anchor="end">${milliseconds(end)}</text></svg></div>`
}
