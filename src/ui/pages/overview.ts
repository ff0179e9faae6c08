/** The first page: the last 24 hours, providers and circuits now, what failed last. */
import type { Status } from '../../admin/commands/status.ts'
import type { AdminContext } from '../../admin/context.ts'
import { formatMoney } from '../../core/money.ts'
import type { ProviderHealth, RequestRow, UsageTotals } from '../../core/ports.ts'
import { HOUR_MS, MINUTE_MS } from '../../lib/period.ts'
import { count, milliseconds, percent, quantile, time, usd } from '../format.ts'
import { type Html, html } from '../html.ts'
import { type Content, circuitMark, facts, live, mark, run, table, tiles, type Visit } from '../layout.ts'
import { namesOf } from '../names.ts'

const HOURS = 24
/** Requests of the last hour whose first tokens and failures are shown. */
const MAX_SAMPLE = 500
const MAX_FAILURES = 8
const UPDATE_SECONDS = 10

const KIND = {
  live: 'good',
  degraded: 'warn',
  failing: 'bad',
  'credential failing': 'bad',
  'no credential': 'plain',
  'no answer': 'plain',
} as const satisfies Record<ProviderHealth['status'], string>

/** Shows the state of the gateway now. */
export async function overview({ query, context }: Visit): Promise<Content> {
  const now = Date.now()
  const status = await run<Status>(context, 'status')
  const health = await run<readonly ProviderHealth[]>(context, 'providers.health')
  const hours = await hourly(context, now)
  const { rows } = await context.requests.page({ since: now - HOUR_MS }, MAX_SAMPLE)
  const body = html`${figures(hours, rows, status)}
${bars(hours)}
<h2>Providers now</h2>
${providers(health)}
<h2>Last failures</h2>
${await failures(rows, context)}
<h2>Process</h2>
${process(status)}`
  return {
    title: 'Overview',
    body: html`${live(query.get('live') !== '0', UPDATE_SECONDS, '/ui', {}, body)}
<p class="row"><a class="button quiet" href="/ui/confirm?action=reload">Reload configuration</a>
<a class="button danger" href="/ui/confirm?action=drain">Drain</a></p>`,
    scripts: ['htmx.js'],
  }
}

/** Totals of each of the last 24 hours: many short reads hold up requests less than a long one. */
async function hourly({ usage }: AdminContext, now: number): Promise<UsageTotals[]> {
  const first = Math.floor(now / HOUR_MS) * HOUR_MS - (HOURS - 1) * HOUR_MS
  const totals: UsageTotals[] = []
  for (let hour = 0; hour < HOURS; hour++) {
    const from = first + hour * HOUR_MS
    totals.push(await usage.totals({ from, to: from + HOUR_MS }))
  }
  return totals
}

function figures(hours: readonly UsageTotals[], rows: readonly RequestRow[], { inFlight }: Status): Html {
  const sum = (member: 'requests' | 'errors' | 'cached' | 'inputTokens' | 'outputTokens') =>
    hours.reduce((all, one) => all + one[member], 0)
  const requests = sum('requests')
  const cost = hours.reduce((all, one) => all + one.cost, 0n)
  const first = rows.flatMap(({ ttftMs }) => ttftMs ?? []).sort((a, b) => a - b)
  return html`<h2>Last ${HOURS} hours</h2>
${tiles([
  ['Requests', count(requests), `${count(sum('cached'))} from cache`],
  ['Errors', count(sum('errors')), percent(sum('errors'), requests)],
  ['Spend', usd(formatMoney(cost)), 'USD'],
  [
    'Tokens',
    count(sum('inputTokens') + sum('outputTokens')),
    `${count(sum('inputTokens'))} in, ${count(sum('outputTokens'))} out`,
  ],
  [
    'First token',
    milliseconds(quantile(first, 0.5)),
    `median; 95 %: ${milliseconds(quantile(first, 0.95))}; ${first.length} streams of the last hour`,
  ],
  ['In flight', count(inFlight), 'now'],
])}`
}

const CHART_WIDTH_PX = 720
const CHART_HEIGHT_PX = 80

/** Requests by the hour, with the failed part at the foot. */
function bars(hours: readonly UsageTotals[]): Html {
  const largest = Math.max(1, ...hours.map(({ requests }) => requests))
  const step = CHART_WIDTH_PX / hours.length
  const scaled = (value: number) => Math.round((value / largest) * CHART_HEIGHT_PX * 10) / 10
  return html`<svg viewBox="0 0 ${CHART_WIDTH_PX} ${CHART_HEIGHT_PX + 1}" role="img" aria-label="Requests by the hour, the oldest first: ${hours
    .map(({ requests }) => requests)
    .join(', ')}" width="${CHART_WIDTH_PX}" height="${CHART_HEIGHT_PX + 1}">
${hours.map(({ requests, errors }, index) => {
  const [whole, failed] = [scaled(requests), scaled(errors)]
  const x = Math.round(index * step)
  return html`<rect class="bar" x="${x}" y="${CHART_HEIGHT_PX - whole}" width="${step - 3}" height="${whole}"/><rect class="failed" x="${x}" y="${CHART_HEIGHT_PX - failed}" width="${step - 3}" height="${failed}"/>`
})}
<path class="axis" d="M0 ${CHART_HEIGHT_PX + 0.5}H${CHART_WIDTH_PX}"/></svg>`
}

/** Lists providers that have a credential, the worst first. */
function providers(health: readonly ProviderHealth[]): Html {
  const order = ['failing', 'credential failing', 'degraded', 'no answer', 'live']
  const shown = health
    .filter(({ status }) => status !== 'no credential')
    .sort((a, b) => order.indexOf(a.status) - order.indexOf(b.status))
  const idle = health.length - shown.length
  return html`${table(
    'providers',
    'Providers',
    'Provider, State, Credentials, Offers, Circuits that are not closed',
    shown.map(({ id, status, credentials, offers, broken }) => [
      id,
      mark(KIND[status], status),
      credentials.map(one => html`<div><code>${one.fingerprint}</code> ${circuitMark(one)}</div>`),
      offers,
      broken.map(one => html`<div>${one.offer} ${circuitMark(one)}</div>`),
    ]),
    'No provider has a credential yet.',
  )}
${idle > 0 && html`<p class="hint">${idle} more providers have no credential.</p>`}`
}

async function failures(rows: readonly RequestRow[], context: AdminContext): Promise<Html> {
  const failed = rows.filter(({ outcome }) => outcome !== 'ok').slice(0, MAX_FAILURES)
  const owned = failed.map(({ projectId, keyId }) => ({ project: projectId, key: keyId }))
  const names = await namesOf(owned, context)
  return table(
    'failures',
    'Last failures',
    'Time (UTC), Status, Error, Model, Provider, Key, Took',
    failed.map(({ id, at, status, outcome, errorCode, requestedModel, provider, keyId, durationMs }) => [
      html`<a id="failure-${id}" href="/ui/requests/${encodeURIComponent(id)}">${time(at)}</a>`,
      mark('bad', status),
      errorCode ?? outcome,
      requestedModel,
      provider,
      names.get(keyId) ?? keyId,
      milliseconds(durationMs),
    ]),
    `None of the last ${rows.length} requests of this hour.`,
  )
}

function process(status: Status): Html {
  const { ready, reason, version, listen, publicUrl, pid, uptimeMs, database, configVersion, lastReload, redis } =
    status
  return facts([
    ['State', ready ? mark('good', 'ready') : mark('bad', `not ready: ${reason}`)],
    ['Version', version],
    ['Listens on', listen],
    ['Public address', publicUrl],
    ['Process', `${pid}, up ${Math.floor(uptimeMs / HOUR_MS)} h ${Math.floor((uptimeMs % HOUR_MS) / MINUTE_MS)} min`],
    ...(status.workers ?? []).map(
      ({ pid, ready, inFlight }) => ['Worker', `${pid}, ${ready ? `${inFlight} in flight` : 'not ready'}`] as const,
    ),
    ['Database', database],
    ...(redis
      ? [['Redis', redis.connected ? `connected, ${redis.nodes} processes` : `not connected: ${redis.error}`] as const]
      : []),
    ['Configuration', configVersion],
    [
      'Last reload',
      html`${lastReload.ok ? mark('good', 'accepted') : mark('bad', 'refused')} ${time(lastReload.at)} ${lastReload.error}`,
    ],
    ...(lastReload.warnings ?? []).map(warning => ['Warning', warning] as const),
  ])
}
