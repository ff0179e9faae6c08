/** Shared by codecs of operations whose answer is one JSON object (docs/contract.md#media-answers). */
import type { Encoded, Encoder } from '../core/codec.ts'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import { formatMoney } from '../core/money.ts'
import { stringifyLossless } from '../json/lossless.ts'
import type { GatewayError } from '../lib/error.ts'
import { answererOf, answerModelOf } from './accounting.ts'
import { EVENT_STREAM, failureEvent } from './event-stream.ts'

/** Alternating names and values; omits values unknown when the head is sent. */
export function targetHeaders(ex: Exchange): string[] {
  const headers: string[] = []
  const provider = answererOf(ex)
  if (provider !== '') headers.push('x-gateway-provider', provider, 'x-gateway-model', answerModelOf(ex))
  return headers
}

/** Adds the cost to the headers of answers that are complete before their head is sent. */
export function costHeaders(ex: Exchange): string[] {
  const { cost } = ex.meter
  const headers = targetHeaders(ex)
  if (cost) headers.push('x-gateway-cost', formatMoney(cost.total))
  return headers
}

/** Writes an answer as typed events. */
export abstract class TypedEncoder implements Encoder {
  readonly contentType = EVENT_STREAM
  protected readonly ex: Exchange

  constructor(ex: Exchange) {
    this.ex = ex
  }

  headers(): readonly string[] {
    return targetHeaders(this.ex)
  }

  abstract write(batch: readonly Event[]): Encoded | undefined
  abstract end(): Encoded

  fail(error: GatewayError): string {
    return failureEvent(error)
  }
}

/** The result of an answer that is not streamed. */
export type Result = Extract<Event, { type: 'result' }>

/** Writes the answer's single result as `written` does, once its usage is known. */
export class ResultEncoder implements Encoder {
  contentType: string
  protected readonly ex: Exchange
  readonly #written: (result: Result, ex: Exchange) => Encoded
  #result: Result | undefined

  constructor(ex: Exchange, written: (result: Result, ex: Exchange) => Encoded, contentType = 'application/json') {
    this.ex = ex
    this.#written = written
    this.contentType = contentType
  }

  write(batch: readonly Event[]): undefined {
    for (const event of batch) if (event.type === 'result') this.#result = event
  }

  end(): Encoded {
    this.ex.meter.complete(false)
    return this.#written(this.#result!, this.ex)
  }

  fail(): undefined {}
}

/** A result whose headers name its cost. */
export class CostedEncoder extends ResultEncoder {
  headers(): readonly string[] {
    return costHeaders(this.ex)
  }
}

/** Writes the answer's single result as `bodyOf` converts it. */
export class WholeEncoder<T> extends CostedEncoder {
  constructor(ex: Exchange, bodyOf: (result: T, ex: Exchange) => object) {
    super(ex, ({ value }) => stringifyLossless(JSON.stringify(bodyOf(value as T, ex))))
  }
}
