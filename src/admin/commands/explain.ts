/** The compiled chain of an endpoint. */
import type { Link } from '../../core/chain.ts'
import { s } from '../../core/schema.ts'
import type { Route } from '../../core/snapshot.ts'
import { errors } from '../../lib/error.ts'
import { type CommandTable, command } from '../command.ts'

const endpoint = s.string({ minLength: 1, description: 'the name or the path of an endpoint' })

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
export type ExplainedChain = ReturnType<typeof explain>
const explain = ({ endpoint, chain, compat }: Route) => ({
  endpoint: endpoint.name,
  method: endpoint.method,
  path: endpoint.path,
  compat,
  chain: endpoint.chain,
  filters: explainLinks(chain.links),
  end: endpoint.serve === 'upstream' ? 'provider' : 'local',
})

/** `explain`, by the name or the path of an endpoint. */
export const explainCommands: CommandTable = {
  /** → `{endpoint, method, path, compat, chain, filters, end}` of the first endpoint with this name. */
  explain: command(s.object({ endpoint }), (args, context) => {
    const routes = context.snapshot().routes()
    const found =
      routes.find(route => route.endpoint.name === args.endpoint) ??
      routes.find(route => route.endpoint.path === args.endpoint)
    if (found) return explain(found)
    const known = [...new Set(routes.map(route => route.endpoint.name))].sort()
    throw errors.notFound(`There is no endpoint "${args.endpoint}". Endpoints: ${known.join(', ')}.`)
  }),
}
