/** `gatewayctl route explain`: the provider selection for a request, and its reasons. */
import type { Command } from 'commander'
import type { ExplainedCandidate, ExplainedRoute } from '../core/ports.ts'
import type { Open } from './session.ts'
import { table } from './table.ts'

interface Options {
  readonly model: string
  readonly routing?: string
  readonly stream?: boolean
  readonly prompt?: string
  readonly session?: string
}

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

function show({ model, reason, choice, candidates, excluded }: ExplainedRoute): string {
  const left =
    excluded.length > 0
      ? `\n${table(
          ['left out', 'because'],
          excluded.map(one => [one.offer, one.reason]),
        )}`
      : ''
  return `${model}: ${choice} (${reason})\n\n${measurements(candidates)}\n${scores(candidates)}${left}`
}

/** Adds `route explain`. */
export function addRoute(program: Command, open: Open): void {
  program
    .command('route')
    .description('routing of requests')
    .command('explain')
    .description('show the candidates of a request, their measurements, all terms of their scores, and the selection')
    .requiredOption('--model <model>', 'model of the request: an id, provider/id, or auto')
    .option('--routing <strategy>', 'auto, price, throughput or latency')
    .option('--stream', 'for a streamed answer, which weighs the time to the first token')
    .option('--prompt <tokens>', 'length of the prompt in tokens')
    .option('--session <id>', 'value of x-session-id')
    .action(async ({ model, routing, stream, prompt, session }: Options, command) => {
      const { admin, print } = open(command)
      const tokens = prompt === undefined ? undefined : Number(prompt)
      const question = { model, routing, stream, prompt: tokens, session }
      print(await admin.command<ExplainedRoute>('route.explain', question), show)
    })
}
