/** The one loop from events to bytes, for streams and whole answers alike. */

import { asError, CLIENT_CLOSED, type GatewayError } from '../lib/error.ts'
import type { Encoder } from './codec.ts'
import type { Event } from './event.ts'
import type { Exchange } from './exchange.ts'
import type { ErrorAnswer } from './reply.ts'
import type { Route } from './snapshot.ts'

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
      ex.answer.status = reply.status
      if (sink.begun) return
      const more = reply.status === 200 ? [...reply.headers, ...ex.answer.headers] : reply.headers
      const own = writer.headers?.()
      sink.head(reply.status, writer.contentType, own ? [...more, ...own] : more)
    }
    for await (const batch of reply.events) {
      ex.observe(batch)
      const out = writer.write(untilError(batch))
      if (out) {
        head()
        const drained = sink.write(out)
        if (drained) await stall(ex, drained)
      }
      if (ex.signal.reason) throw ex.signal.reason
      if (ex.answer.failure && !started && !sink.begun) throw ex.answer.failure
      if (ex.answer.failure) break
    }
    if (ex.answer.failure) await fail(ex, writer, ex.answer.failure, sink)
    else {
      const closing = writer.conclude?.()
      if (closing) await closing
      const last = writer.end()
      head()
      const ended = sink.end(last)
      if (ended) await stall(ex, ended)
    }
    ex.answer.outcome = ex.answer.failure ? 'error' : 'ok'
  } catch (thrown) {
    const error = asError(ex.signal.reason ?? thrown)
    ex.answer.failure = error
    ex.answer.outcome = error.status === CLIENT_CLOSED ? 'aborted' : 'error'
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

async function fail(ex: Exchange, encoder: Encoder, error: GatewayError, sink: Sink): Promise<void> {
  await encoder.conclude?.(error)
  const last = encoder.fail(error)
  if (last === undefined) {
    sink.destroy()
    return
  }
  const ended = sink.end(last)
  if (ended) await stall(ex, ended)
}

function refuse({ endpoint }: Route, ex: Exchange, error: GatewayError, sink: Sink): void {
  const { status, contentType, headers, body }: ErrorAnswer = endpoint.errorAnswer?.(error, ex) ?? {
    contentType: 'application/json',
    headers: Object.entries(error.headers).flat(),
    body: JSON.stringify(endpoint.codec.error(named(error, ex), ex.http.headers, ex.logId)),
  }
  ex.answer.status = error.status
  sink.head(status ?? error.status, contentType, headers)
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
