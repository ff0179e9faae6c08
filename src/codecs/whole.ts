/** Shared by codecs of operations whose answer is one JSON object (docs/contract.md#media-answers). */
import type { Encoded, Encoder } from '../core/codec.ts'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import { formatMoney } from '../core/money.ts'
import { stringifyLossless } from '../json/lossless.ts'
import { answererOf, answerModelOf } from './accounting.ts'

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

/** Writes the answer's single result as `bodyOf` converts it. */
export class WholeEncoder<T> implements Encoder {
  readonly contentType = 'application/json'
  readonly #ex: Exchange
  readonly #bodyOf: (result: T, ex: Exchange) => object
  #result: T | undefined

  constructor(ex: Exchange, bodyOf: (result: T, ex: Exchange) => object) {
    this.#ex = ex
    this.#bodyOf = bodyOf
  }

  headers(): readonly string[] {
    return costHeaders(this.#ex)
  }

  write(batch: readonly Event[]): undefined {
    for (const event of batch) if (event.type === 'result') this.#result = event.value as T
  }

  end(): Encoded {
    this.#ex.meter.complete(false)
    return stringifyLossless(JSON.stringify(this.#bodyOf(this.#result!, this.#ex)))
  }

  fail(): undefined {}
}
