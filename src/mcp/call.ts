/** Calls another endpoint in process, as the caller of an exchange: the same chain decides, serves and charges. */

import { Exchange } from '../core/exchange.ts'
import type { Headers } from '../core/http-request.ts'
import { pump, type Sink } from '../core/pump.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import type { MemoryLease } from '../limits/memory.ts'
import { scheduler } from '../limits/scheduler.ts'
import { meters } from '../metering/meter.ts'

/** Headers of the caller that name its program. Never a credential. */
const PASSED = [
  'x-source',
  'user-agent',
  'referer',
  'http-referer',
  'x-title',
  'x-openrouter-title',
  'x-session-id',
  'x-no-cache',
  'x-no-fallback',
  'x-request-id',
]
/** Copies of an answer in memory: its pieces, their text, the parsed value and the result. */
const ANSWER_COPIES = 4

/** A request to another endpoint of this gateway, made within an exchange. */
export interface Call {
  /** Path of an endpoint that takes JSON by POST. */
  readonly path: string
  readonly body: unknown
  /** Takes memory for the answer, which the caller releases once it has passed it on. */
  readonly lease: MemoryLease
  /** Gets what a filter throws when the call is over. */
  report(filter: string, thrown: unknown): void
}

/** The answer: what the body of a 200 says, or the refusal. */
export type Called = { readonly ex: Exchange; readonly answer: unknown } | { readonly failure: GatewayError }

/** For exchanges whose principal is known. Ends when the caller's exchange does. Never rejects. */
export async function call(parent: Exchange, { path, body, lease, report }: Call): Promise<Called> {
  const match = parent.snapshot.match('POST', path)
  if (!match || 'allow' in match) return { failure: errors.notFound(`There is no endpoint ${path}.`) }
  const { value: route, params } = match
  const ex = new Exchange({
    meters,
    snapshot: parent.snapshot,
    endpoint: route.endpoint,
    headers: { ...headersOf(parent), 'content-type': 'application/json' },
    query: '',
    params,
    signal: parent.signal,
    peer: parent.http.peer,
    port: parent.http.port,
    // Its body is a part of the caller's.
    body: async () => ({ value: body, values: parent.input.values }),
    memory: parent.input.memory,
  })
  ex.caller.principal = parent.caller.principal
  ex.caller.policy = parent.caller.policy
  ex.caller.access = parent.caller.access
  ex.caller.labels = parent.caller.labels
  const sink = new Collected(lease)
  await pump(route, ex, sink)
  await route.chain.finish(ex, report)
  if (ex.answer.failure) return { failure: ex.answer.failure }
  const { pieces } = sink
  if (!pieces) return { failure: errors.overloaded() }
  return { ex, answer: await scheduler.run(ex.caller.tenant, () => JSON.parse(pieces.map(String).join('')) as unknown) }
}

function headersOf({ http: { headers }, id }: Exchange): Headers {
  const passed = PASSED.flatMap(name => (headers[name] === undefined ? [] : [[name, headers[name]] as const]))
  return { ...Object.fromEntries(passed), 'x-request-id': id }
}

/** Keeps a whole answer. */
class Collected implements Sink {
  /** Undefined until all of it is here, and where there is no memory for it. */
  pieces: readonly (string | Buffer)[] | undefined
  readonly #lease: MemoryLease

  constructor(lease: MemoryLease) {
    this.#lease = lease
  }

  head(): void {}

  write(): undefined {}

  end(last: string | Buffer | readonly Buffer[] = ''): undefined {
    const pieces = typeof last === 'string' || Buffer.isBuffer(last) ? [last] : last
    const size = pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0)
    if (this.#lease.grow(size * ANSWER_COPIES)) this.pieces = pieces
  }

  destroy(): void {}
}
