/** Explains the chain of an endpoint, and the routing of a request. */
import type { Link } from '../../core/chain.ts'
import type { ExplainedCandidate, ExplainedRoute } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import type { Route } from '../../core/snapshot.ts'
import { errors } from '../../lib/error.ts'
import { maskAll } from '../../secrets/known.ts'
import { mapText } from '../../secrets/map-text.ts'
import { type CommandTable, command, list, option, shell, table } from '../command.ts'

const endpoint = shell(
  '<endpoint>: name or path: chat, /v1/chat/completions',
  s.string({ minLength: 1, description: 'the name or the path of an endpoint' }),
)

interface ExplainedFilter {
  readonly name: string
  readonly runs: 'once per request' | 'once per attempt'
  readonly needs: readonly string[]
  readonly gives: readonly string[]
  /** In effect, with defaults. */
  readonly options: unknown
}

/** Filters below a repeating one run once per attempt. */
function explainLinks(links: readonly Link[]): ExplainedFilter[] {
  let perAttempt = false
  return links.map(link => {
    const { name, needs = [], gives = [], repeats = false } = link.factory
    const runs = perAttempt ? 'once per attempt' : 'once per request'
    perAttempt ||= repeats
    return { name, runs, needs, gives, options: link.options }
  })
}

/** An endpoint with the filters of its chain, in order. */
type ExplainedChain = ReturnType<typeof explain>
const explain = ({ endpoint, chain, compat }: Route) => ({
  endpoint: endpoint.name,
  method: endpoint.method,
  path: endpoint.path,
  compat,
  chain: endpoint.chain,
  filters: explainLinks(chain.links),
  end: endpoint.serve === 'upstream' ? 'provider' : 'local',
})

function showChain({ endpoint, method, path, compat, chain, filters, end }: ExplainedChain): string {
  const rows = filters.map(({ name, runs, needs, gives, options }) => {
    return [name, runs, list(needs), list(gives), JSON.stringify(options)]
  })
  const last = end === 'provider' ? 'the call to the provider' : 'answered by the gateway itself'
  const choices = compat === undefined ? '' : `compat ${JSON.stringify(compat)}\n`
  return `${endpoint}: ${method} ${path}, chain "${chain}", from top to bottom\n${choices}\n${table(
    ['filter', 'runs', 'needs', 'gives', 'options'],
    rows,
  )}\nthen ${last}\n`
}

/** `explain`, by the name or the path of an endpoint. */
export const explainCommands: CommandTable = {
  /** → `{endpoint, method, path, compat, chain, filters, end}` of the first endpoint with this name. */
  explain: command(
    s.object({ endpoint }),
    (args, context) => {
      const routes = context.snapshot().routes()
      const found =
        routes.find(route => route.endpoint.name === args.endpoint) ??
        routes.find(route => route.endpoint.path === args.endpoint)
      if (found) return explain(found)
      const known = [...new Set(routes.map(route => route.endpoint.name))].sort()
      throw errors.notFound(`There is no endpoint "${args.endpoint}". Endpoints: ${known.join(', ')}.`)
    },
    'show the compiled filter chain of an endpoint: what runs once per request, what once per attempt',
    showChain,
  ),
}

const who = s.string({ minLength: 1, maxLength: 256 })
const question = s.object({
  model: shell(
    '--model <model>: model of the request: an id, provider/id, or auto',
    s.string({ minLength: 1, maxLength: 256, description: 'a model, as a request names it' }),
  ),
  routing: option(
    '--routing <strategy>: auto, price, throughput or latency',
    s.enum('auto', 'price', 'throughput', 'latency'),
  ),
  stream: option('--stream: for a streamed answer, which weighs the time to the first token', s.boolean()),
  prompt: option(
    '--prompt <tokens>: length of the prompt in tokens',
    s.integer({ minimum: 0, maximum: 1_000_000, description: 'tokens, at most 1000000' }),
  ),
  session: option('--session <id>: value of x-session-id', s.string({ minLength: 1, maxLength: 256 })),
  org: option('--org <id>: id or name of the organization, for conditions', who),
  project: option('--project <id>: id of the project, for conditions', who),
  key: option('--key <id>: id or name of the API key, for conditions', who),
  tags: option('--tags <tags>: value of x-gateway-tags, for conditions', s.string({ minLength: 1, maxLength: 4096 })),
  vision: option('--vision: for a request with an image', s.boolean()),
  tools: option('--tools: for a request that offers tools', s.boolean()),
})

const round = (value: number | null, digits: number): number | null =>
  value === null ? null : Number(value.toFixed(digits))

const circuitOf = ({ circuit, openMs }: Pick<ExplainedCandidate, 'circuit' | 'openMs'>): string =>
  openMs > 0 ? `${circuit} ${Math.ceil(openMs / 1000)}s` : circuit

const measurements = (candidates: readonly ExplainedCandidate[]): string =>
  table(
    ['#', 'offer', 'price USD/M', 'priority', 'requests', 'uptime %', 'tokens/s', 'first token ms', 'circuit', 'polls'],
    candidates.map(one => [
      one.place,
      one.offer,
      round(one.price, 4),
      one.priority,
      one.requests,
      round(one.uptime, 2),
      round(one.throughput, 1),
      round(one.latency, 0),
      circuitOf(one),
      one.polls && circuitOf(one.polls),
    ]),
  )

/** Signed, so that a bonus is visible. */
const scores = (candidates: readonly ExplainedCandidate[]): string =>
  table(
    ['#', 'offer', 'price', 'uptime', 'throughput', 'latency', 'cache', 'base', 'priority', 'penalty', 'score'],
    candidates.map(({ place, offer, terms, base, priorityPenalty, uptimePenalty, score }) => {
      const { price, uptime, throughput, latency, cache } = terms
      const parts = [price, uptime, throughput, latency, cache, base, priorityPenalty, uptimePenalty, score]
      return [place, offer, ...parts.map(part => part.toFixed(4))]
    }),
  )

function showRoute({ model, rule, mirror, reason, choice, candidates, excluded }: ExplainedRoute): string {
  const left =
    excluded.length > 0
      ? `\n${table(
          ['left out', 'because'],
          excluded.map(one => [one.offer, one.reason]),
        )}`
      : ''
  const copied = mirror === undefined ? '' : `, copied to ${mirror.to} for ${mirror.percent} %`
  const moved = rule === undefined ? '' : `, by rule ${rule}${copied}`
  return `${model}: ${choice} (${reason}${moved})\n\n${measurements(candidates)}\n${scores(candidates)}${left}`
}

/** `route.explain`. */
export const routeCommands: CommandTable = {
  /** → the candidates with their measurements and all terms of their scores, the selection and its reason. */
  'route.explain': command(
    question,
    async (args, context) => mapText(await context.explainRoute(args), maskAll),
    'show the candidates of a request, their measurements, all terms of their scores, and the selection',
    showRoute,
  ),
}
