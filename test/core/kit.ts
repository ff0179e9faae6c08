/** What the unit tests share: an exchange without a server, and a sink that remembers. */
import { Cancellation } from '../../src/core/cancel.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Endpoint } from '../../src/core/endpoint.ts'
import type { Event } from '../../src/core/event.ts'
import { Exchange } from '../../src/core/exchange.ts'
import type { Headers } from '../../src/core/http-request.ts'
import type { Principal } from '../../src/core/ports.ts'
import type { Sink } from '../../src/core/pump.ts'
import type { Snapshot } from '../../src/core/snapshot.ts'
import type { Target } from '../../src/core/translator.ts'
import { chat } from '../../src/endpoints/inference.ts'
import { models } from '../../src/endpoints/models.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { meters } from '../../src/metering/meter.ts'
import { principalOf } from './principal.ts'

export interface ExchangeFacts {
  request?: object
  headers?: Headers
  query?: string
  target?: Target
  principal?: Principal
  signal?: Cancellation
  endpoint?: Endpoint
  snapshot?: Partial<Snapshot>
  peer?: string
  body?: () => Promise<unknown>
}

/** An exchange at the chat endpoint; `request` is its canonical request, as if it had been read already. */
export function exchange(facts: ExchangeFacts = {}): Exchange {
  const ex = new Exchange({
    meters,
    snapshot: { catalog: {}, ...facts.snapshot } as Snapshot,
    endpoint: facts.endpoint ?? chat,
    headers: facts.headers ?? {},
    query: facts.query ?? '',
    signal: facts.signal ?? new Cancellation(),
    peer: facts.peer ?? '',
    body: async () => ({ value: await (facts.body?.() ?? facts.request) }),
  })
  ex.request = facts.request as ChatRequest | undefined
  ex.target = facts.target
  ex.caller.principal = facts.principal
  return ex
}

export const principal: Principal = principalOf()

/** Remembers what it is told, one line a call. `slow` answers every write with what the pump must wait for. */
export function recorder(log: string[] = [], slow?: () => Promise<void>): Sink & { readonly log: string[] } {
  return {
    log,
    head: (status, contentType) => void log.push(`head ${status} ${contentType}`),
    write(chunk) {
      log.push(`write ${chunk}`)
      return slow?.()
    },
    end: (chunk = '') => void log.push(`end ${chunk}`),
    destroy: () => void log.push('destroy'),
  }
}

export const text = (said: string, choice = 0): Event => ({ type: 'text', choice, text: said })

/** Headers that are given as names and values in turn, by their names; throws when one stands there twice. */
export function byName(headers: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {}
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!
    if (name in record) throw new Error(`the header "${name}" stands there twice`)
    record[name] = headers[at + 1]!
  }
  return record
}

/** Batches as a reply's events. */
export async function* eventsOf(...batches: (readonly Event[])[]): AsyncGenerator<readonly Event[]> {
  yield* batches
}

/** What a client reads of the catalogue: what JSON leaves out is not there. */
export async function listingOf<Entry>(ex: Exchange): Promise<Entry[]> {
  if (typeof models.serve === 'string') throw new Error('the catalogue is served locally')
  const memory = new MemoryBudget(2 ** 30, { memory: () => 0 })
  const { events } = await models.serve(ex, { memory } as never)
  const pieces: Buffer[] = []
  for await (const [event] of events) {
    if ((event?.type === 'result' || event?.type === 'bytes') && event.bytes) pieces.push(Buffer.from(event.bytes))
  }
  return (JSON.parse(String(Buffer.concat(pieces))) as { data: Entry[] }).data
}

/** What `run` throws; fails loudly when it does not. */
export function thrown(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
