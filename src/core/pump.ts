/** The one loop from events to bytes, for streams and whole answers alike. */
import { turns } from '../lib/turns.ts'
import type { Encoded, Encoder } from './codec.ts'
import { asError, CLIENT_CLOSED, type GatewayError } from './error.ts'
import type { Event } from './event.ts'
import type { Exchange } from './exchange.ts'
import type { Route } from './snapshot.ts'
import type { ByteSteps } from './stringify-steps.ts'

/** Where bytes go. `write` returns a promise when the reader must catch up first. */
export interface Sink {
  /** True once an answer has begun, though it be by a heartbeat: its status stands. */
  readonly begun?: boolean
  /** `headers`: names and values in turn, besides the content type. */
  head(status: number, contentType: string, headers: readonly string[]): void
  write(chunk: string | Buffer | readonly Buffer[]): Promise<void> | undefined
  /** Returns a promise where the reader must catch up before the last of it. */
  end(chunk?: string | Buffer | readonly Buffer[]): Promise<void> | undefined
  /** Breaks the connection: what was sent cannot be completed. */
  destroy(): void
}

/** Events that are written in one turn of the loop: some clients' wires say ten things of each. */
const SLICE = 1000

/** Runs an exchange through its chain to its last byte. Never rejects: a failure becomes the client's answer. */
export async function pump(route: Route, ex: Exchange, sink: Sink): Promise<void> {
  const { codec } = route.endpoint
  let started = false
  let encoder: Encoder | undefined
  try {
    route.endpoint.check?.(ex)
    const reply = await route.chain.handle(ex)
    const writer = codec.encoder(ex)
    encoder = writer
    const head = () => {
      if (started) return
      started = true
      ex.status = reply.status
      if (sink.begun) return
      const more = reply.status === 200 ? [...reply.headers, ...ex.replyHeaders] : reply.headers
      const own = writer.headers?.()
      sink.head(reply.status, writer.contentType, own ? [...more, ...own] : more)
    }
    for await (const batch of reply.events) {
      ex.observe(batch)
      const events = untilError(batch)
      for (let from = 0; from === 0 || from < events.length; from += SLICE) {
        if (from > 0) await turns.next(ex.tenant)
        const out = writer.write(events.length > SLICE ? events.slice(from, from + SLICE) : events)
        if (out) {
          const bytes = isInSteps(out) ? await turns.run(ex.tenant, out) : out
          head()
          const drained = sink.write(bytes)
          if (drained) await stall(ex, drained)
        }
        if (ex.signal.reason) throw ex.signal.reason
      }
      if (ex.failure && !started && !sink.begun) throw ex.failure
      if (ex.failure) break
    }
    if (ex.failure) await fail(ex, writer, ex.failure, sink)
    else {
      const closing = writer.conclude?.()
      if (closing) await closing
      const last = writer.end()
      const bytes = isInSteps(last) ? await turns.run(ex.tenant, last) : last
      head()
      const ended = sink.end(bytes)
      if (ended) await stall(ex, ended)
    }
    ex.outcome = ex.failure ? 'error' : 'ok'
  } catch (thrown) {
    const error = asError(ex.signal.reason ?? thrown)
    ex.failure = error
    ex.outcome = error.status === CLIENT_CLOSED ? 'aborted' : 'error'
    if (started || sink.begun) await fail(ex, encoder ?? codec.encoder(ex), error, sink)
    else refuse(route, ex, error, sink)
  }
  ex.timings.end = performance.now()
}

/** The time that a client takes to catch up says nothing of its provider. */
async function stall({ timings, signal }: Exchange, drained: Promise<void>): Promise<void> {
  const from = performance.now()
  await signal.until(drained)
  timings.stalled += performance.now() - from
}

/** The events before the first error; what comes after it is not the client's. */
function untilError(batch: readonly Event[]): readonly Event[] {
  const index = batch.findIndex(event => event.type === 'error')
  return index < 0 ? batch : batch.slice(0, index)
}

const isInSteps = (out: Encoded): out is ByteSteps => typeof out === 'object' && 'next' in out

async function fail(ex: Exchange, encoder: Encoder, error: GatewayError, sink: Sink): Promise<void> {
  await encoder.conclude?.(error)
  const last = encoder.fail(error)
  if (last === undefined) {
    sink.destroy()
    return
  }
  const ended = sink.end(isInSteps(last) ? await turns.run(ex.tenant, last) : last)
  if (ended) await stall(ex, ended)
}

function refuse({ endpoint }: Route, ex: Exchange, error: GatewayError, sink: Sink): void {
  ex.status = error.status
  const { contentType, headers, body } = endpoint.errorAnswer?.(error, ex) ?? {
    contentType: 'application/json',
    headers: Object.entries(error.headers).flat(),
    body: JSON.stringify(endpoint.codec.error(named(error, ex), ex.headers, ex.logId)),
  }
  sink.head(error.status, contentType, headers)
  sink.end(body)
}

/** The error with its field as its client calls it, also where its message begins with the name. */
function named(error: GatewayError, ex: Exchange): GatewayError {
  const { param, message } = error
  const name = param === null ? param : (ex.endpoint.codec.fieldOf?.(param, ex) ?? param)
  if (name === param) return error
  return error.with({
    param: name,
    message: message.startsWith(param!) ? name + message.slice(param!.length) : message,
  })
}
