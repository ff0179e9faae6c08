/** What the gateway may cost at most, and what its workers bring at least. */

/**
 * Ratios are of CPU time per request, over the floor; added latency is over the floor too. `read` gives undefined for
 * what was not measured.
 */
const bounds = [
  ...[
    ['unary', 1.4],
    ['unary, one at a time', 3.5],
    ['stream of 64', 1.1],
    ['stream of 64, one a millisecond', 1.1],
    ['Anthropic stream', 1.4],
    ['AI SDK stream of 64', 1.4],
    ['100 kB prompt', 1.3],
    ['1 MB prompt', 1.3],
    ['embeddings, 3 MB', 1.3],
    ['image of 4 MB', 1.3],
    ['upload of 10 MB', 1.2],
    ['speech of 1 MB', 1.1],
    ['MCP tools/call, beside a unary one', 15],
  ].map(([name, limit]) => ({
    name: `${name}, CPU`,
    limit,
    unit: '× floor',
    read: of => load(of, name)?.ratio?.median,
  })),
  { name: 'added latency at 500/s, p50', limit: 0.5, unit: 'ms', read: of => load(of, 'unary')?.addedMs?.p50 },
  { name: 'added latency at 500/s, p99', limit: 3, unit: 'ms', read: of => load(of, 'unary')?.addedMs?.p99 },
  {
    name: 'added to the first token, p50',
    limit: 1,
    unit: 'ms',
    read: of => load(of, 'stream of 64')?.addedFirstMs?.p50,
  },
  { name: 'small beside 1 MB prompts, p99', limit: 20, unit: 'ms', read: of => gateway(of.beside)?.p99Ms },
  { name: 'memory idle', limit: 100, unit: 'MB', read: of => scaled(gateway(of.streams)?.idleBytes, 1e-6) },
  { name: 'memory per open stream', limit: 40, unit: 'kB', read: of => scaled(gateway(of.streams)?.streamBytes, 1e-3) },
  { name: 'event-loop lag with open streams, p99', limit: 30, unit: 'ms', read: of => gateway(of.streams)?.lagP99Ms },
  { name: 'start', limit: 0.5, unit: 's', read: of => scaled(of.start?.medianMs, 1e-3) },
  {
    name: 'tracing, CPU',
    limit: 1.1,
    unit: '× without',
    read: of => of.tracing?.rows.find(({ target }) => target === 'traced')?.ratio?.median,
  },
  { name: 'throughput of workers', limit: 1.7, atLeast: true, unit: '× one worker', read: of => of.workers?.alone },
]

const gateway = rows => rows?.find(({ target }) => target === 'gateway')
const load = ({ loads }, name) => gateway(loads?.find(load => load.name === name)?.rows)
const scaled = (value, by) => value && value * by

/** The bounds whose figure was measured; a figure that is no number breaks its bound. */
export const verdicts = results =>
  bounds
    .map(({ read, ...bound }) => ({ ...bound, value: read(results) }))
    .filter(({ value }) => value != null)
    .map(({ atLeast = false, ...bound }) => ({ ...bound, atLeast, holds: isWithin(bound, atLeast) }))

const isWithin = ({ value, limit }, atLeast) => (atLeast ? value >= limit : value <= limit)
