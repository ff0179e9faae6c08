/** The end of every inference chain: send, classify, decode, commit. Nothing above it ever sees provider bytes. */
import { asError, errors, type GatewayError } from '../core/error.ts'
import { type Event, isContent } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Reply } from '../core/filter.ts'
import type { Decoder } from '../core/translator.ts'
import { decoded, type Source } from './encoding.ts'
import type { Framing } from './framing/framing.ts'
import { framingFor } from './framing/index.ts'
import { retryAfterMs } from './retry-after.ts'
import { sign } from './sign.ts'
import type { Incoming, Transport } from './transport.ts'

const MAX_ERROR_BYTES = 64 * 1024

/**
 * Resolves once the first event that a client can see is there (the commit point); until then every failure is a
 * GatewayError that `route` may answer with another target. After it, failures are `error` events.
 */
export function terminal(transport: Transport): (ex: Exchange) => Promise<Reply> {
  return async ex => {
    const target = ex.target!
    const request = ex.outbound!
    const { timeouts } = target.provider
    ex.marks.sent = performance.now()
    const incoming = await transport.send({
      baseUrl: target.provider.baseUrl,
      ...sign(target, request, ex.id),
      body: JSON.stringify(request.body),
      timeouts,
      remainingMs: timeouts.total - (ex.marks.sent - ex.marks.start),
      signal: ex.signal,
    })
    try {
      if (incoming.status >= 400) throw await refusal(incoming, ex)
      if (incoming.status !== 200) throw errors.invalidAnswer(`its status is ${incoming.status}`, incoming.status)
      const { framing, mode } = framingFor(incoming.header('content-type'), ex.streaming)
      const source = decoded(incoming, incoming.header('content-encoding'))
      const answer = new Answer(incoming, source, framing, target.translator.decoder(mode, target))
      const first = await answer.commit()
      incoming.committed()
      ex.marks.answered = performance.now()
      return { status: 200, headers: {}, events: answer.events(first) }
    } catch (thrown) {
      incoming.destroy()
      throw thrown
    }
  }
}

class Answer {
  readonly #incoming: Incoming
  readonly #source: Source
  readonly #framing: Framing
  readonly #decoder: Decoder
  #ended = false

  /** `source` gives the bytes of `incoming`, plain. */
  constructor(incoming: Incoming, source: Source, framing: Framing, decoder: Decoder) {
    this.#incoming = incoming
    this.#source = source
    this.#framing = framing
    this.#decoder = decoder
  }

  /** Everything up to and with the first batch that holds something to see. Throws what fails before it. */
  async commit(): Promise<Event[]> {
    const first: Event[] = []
    while (!this.#ended) {
      const batch = await this.#batch()
      first.push(...batch)
      const seen = batch.findIndex(event => event.type === 'error' || isContent(event))
      const event = batch[seen]
      if (event?.type === 'error') throw event.error
      if (event) return first
    }
    throw errors.invalidAnswer('it is empty')
  }

  async *events(first: Event[]): AsyncGenerator<readonly Event[]> {
    try {
      yield first
      while (!this.#ended) {
        let batch: Event[]
        try {
          batch = await this.#batch()
        } catch (thrown) {
          // A socket that breaks after the answer was complete took nothing away.
          if (this.#decoder.done) return
          batch = [{ type: 'error', error: asError(thrown) }]
        }
        if (batch.length > 0) yield batch
      }
    } finally {
      if (this.#ended) this.#incoming.release()
      else this.#incoming.destroy()
    }
  }

  /** The events of all chunks that are there; the wire's own terminator ends the answer before its last byte. */
  async #batch(): Promise<Event[]> {
    const chunks = await this.#source.take()
    const events: Event[] = []
    for (const chunk of chunks ?? []) this.#decode(this.#framing.push(chunk), events)
    if (chunks === undefined) this.#decode(this.#framing.end(), events)
    if (chunks === undefined || this.#decoder.done) {
      this.#ended = true
      events.push(...this.#decoder.end())
    }
    return events
  }

  #decode(frames: ReturnType<Framing['push']>, events: Event[]): void {
    for (const frame of frames) {
      if (this.#decoder.done) return
      const decoded = this.#decoder.frame(frame)
      for (const event of decoded) events.push(event)
    }
  }
}

/** The provider's refusal, read to a bounded length. */
async function refusal(incoming: Incoming, ex: Exchange): Promise<GatewayError> {
  const chunks: Buffer[] = []
  let size = 0
  for (let batch = await incoming.take(); batch && size < MAX_ERROR_BYTES; batch = await incoming.take()) {
    for (const chunk of batch) {
      chunks.push(chunk)
      size += chunk.length
    }
  }
  const body = Buffer.concat(chunks).subarray(0, MAX_ERROR_BYTES).toString('utf8')
  const error = ex.target!.translator.error(incoming.status, body, ex.target!)
  const wait = retryAfterMs(name => incoming.header(name), error.message)
  return wait === undefined ? error : error.with({ retryAfterMs: wait })
}
