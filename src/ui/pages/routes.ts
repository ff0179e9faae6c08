/** Routes: which offers would serve a request, and why. */
import { commands } from '../../admin/commands/index.ts'
import type { ExplainedCandidate, ExplainedRoute } from '../../core/ports.ts'
import { GatewayError } from '../../lib/error.ts'
import { milliseconds } from '../format.ts'
import { argumentsOf, fieldsOf, inputs } from '../forms.ts'
import { type Html, html } from '../html.ts'
import { type Content, circuitMark, run, table, type Visit } from '../layout.ts'

/** Explains the route of the request that the form describes. */
export async function routes({ query, context }: Visit): Promise<Content> {
  const fields = fieldsOf(commands['route.explain']!)
  const args = argumentsOf(fields, query)
  return {
    title: 'Routes',
    body: html`<form action="/ui/routes" method="get">
${inputs(fields, query)}
<p class="row"><button>Explain</button></p>
</form>
${args.model !== undefined && (await explained())}`,
  }

  /** A request that would be refused is explained by its error. */
  async function explained(): Promise<Html> {
    try {
      return show(await run<ExplainedRoute>(context, 'route.explain', args))
    } catch (thrown) {
      if (thrown instanceof GatewayError && thrown.status < 500)
        return html`<p role="alert">${thrown.status}: ${thrown.message}</p>`
      throw thrown
    }
  }
}

const rounded = (value: number | null, digits: number) => (value === null ? '' : Number(value.toFixed(digits)))

const measurements = (one: ExplainedCandidate) => [
  one.place,
  one.offer,
  rounded(one.price, 4),
  one.priority,
  one.requests,
  rounded(one.uptime, 2),
  rounded(one.throughput, 1),
  milliseconds(one.latency),
  circuitMark(one),
]

function scores({ place, offer, terms, base, priorityPenalty, uptimePenalty, score }: ExplainedCandidate) {
  const { price, uptime, throughput, latency, cache } = terms
  const parts = [price, uptime, throughput, latency, cache, base, priorityPenalty, uptimePenalty]
  return [place, offer, ...parts.map(part => part.toFixed(4)), html`<strong>${score.toFixed(4)}</strong>`]
}

const show = ({ model, reason, choice, candidates, excluded }: ExplainedRoute): Html => html`<h2>${model}</h2>
<p><strong>${choice}</strong> would be tried first: <code>${reason}</code>. Others follow in this order when it fails.</p>
${table(
  'candidates',
  'Candidates',
  '#, Offer, USD/M, Priority, Requests, Uptime %, Tokens/s, First token, Circuit',
  candidates.map(measurements),
)}
<h2>Scores</h2>
<p class="hint">The lowest score comes first.</p>
${table(
  'scores',
  'Scores',
  '#, Offer, Price, Uptime, Throughput, Latency, Cache, Base, Priority, Penalty, Score',
  candidates.map(scores),
)}
${
  excluded.length > 0 &&
  html`<h2>Left out</h2>
${table(
  'excluded',
  'Left out',
  'Offer, Because',
  excluded.map(one => [one.offer, one.reason]),
)}`
}`
