/** Writes the headers that clients of LiteLLM read (docs/litellm-compat.md#answers). */
import type { Codec, Encoded, Encoder } from '../../core/codec.ts'
import type { Endpoint } from '../../core/endpoint.ts'
import type { Event } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import { formatMoney } from '../../core/money.ts'
import { offerOf } from '../../core/offer.ts'
import type { ErrorAnswer } from '../../core/reply.ts'
import type { GatewayError } from '../../lib/error.ts'

const CALL_ID = 'x-litellm-call-id'
const ID = /^[\w.:-]{1,128}$/

/** Name and value of the header that names a call: by the id that its client gave, else by that of the request log. */
function callId(ex: Exchange): readonly [string, string] {
  const given = ex.header(CALL_ID)
  return [CALL_ID, given !== undefined && ID.test(given) ? given : ex.logId]
}

/** Headers of an answer whose head is sent. The cost of a stream is not known by then. */
function answerHeaders(ex: Exchange): string[] {
  const { answer, attempts, caller, meter, target, timings } = ex
  const headers: string[] = []
  const offer = answer.cached ? `${answer.cached.provider}/${answer.cached.model}` : target && offerOf(target.mapping)
  if (offer !== undefined) headers.push('x-litellm-model-id', offer)
  if (target) headers.push('x-litellm-model-name', `${target.provider.id}/${target.mapping.externalId}`)
  if (isHeader(ex.requested.model)) headers.push('x-litellm-model-group', ex.requested.model)
  const models = attempts.map(one => one.target.mapping.model.id)
  const fallbacks = models.filter((model, at) => at > 0 && model !== models[at - 1]).length
  headers.push('x-litellm-attempted-retries', String(Math.max(0, models.length - 1 - fallbacks)))
  headers.push('x-litellm-attempted-fallbacks', String(fallbacks))
  if (timings.sent > 0) headers.push('x-litellm-overhead-duration-ms', ms(timings.sent - timings.start))
  const limits = caller.principal?.rates?.find(({ of }) => of === 'key')?.limits
  if (limits?.rpm !== undefined) headers.push('x-litellm-key-rpm-limit', String(limits.rpm))
  if (limits?.tpm !== undefined) headers.push('x-litellm-key-tpm-limit', String(limits.tpm))
  const budget = caller.principal?.budgets.find(({ of }) => of === 'key')
  if (budget) headers.push('x-litellm-key-max-budget', formatMoney(budget.limit))
  if (ex.streaming) return headers
  headers.push('x-litellm-response-duration-ms', ms(performance.now() - timings.start))
  if (meter.cost) headers.push('x-litellm-response-cost', formatMoney(meter.cost.total))
  return headers
}

const ms = (time: number): string => time.toFixed(3)

/** Names that a header can carry. */
const isHeader = (text: string): boolean => /^[\x21-\x7e]{1,256}$/.test(text)

/** Adds the headers to what another encoder writes. */
class HeaderEncoder implements Encoder {
  readonly #inner: Encoder
  readonly #ex: Exchange

  constructor(inner: Encoder, ex: Exchange) {
    this.#inner = inner
    this.#ex = ex
  }

  get contentType(): string {
    return this.#inner.contentType
  }

  headers(): readonly string[] {
    const ex = this.#ex
    const headers = [...(this.#inner.headers?.() ?? []), ...callId(ex)]
    return ex.endpoint.operation ? [...headers, ...answerHeaders(ex)] : headers
  }

  write(batch: readonly Event[]): Encoded | undefined {
    return this.#inner.write(batch)
  }

  conclude(error?: GatewayError): Promise<void> | undefined {
    return this.#inner.conclude?.(error)
  }

  end(): Encoded {
    return this.#inner.end()
  }

  fail(error: GatewayError): Encoded | undefined {
    return this.#inner.fail(error)
  }
}

/** The encoder of a codec, with the headers. */
export const encoderOf = (codec: Codec, ex: Exchange): Encoder => new HeaderEncoder(codec.encoder(ex), ex)

/** The answer to an error as the endpoint makes it, with the id of the call. */
export function errorAnswerOf(endpoint: Endpoint, error: GatewayError, ex: Exchange): ErrorAnswer {
  const own = endpoint.errorAnswer?.(error, ex)
  if (own) return Object.assign({}, own, { headers: [...own.headers, ...callId(ex)] })
  const { codec } = endpoint
  return {
    contentType: 'application/json',
    headers: [...Object.entries(error.headers).flat(), ...callId(ex)],
    body: JSON.stringify(codec.error(named(error, endpoint, ex), ex.http.headers, ex.logId)),
  }
}

/** The error with its field as its client calls it. */
function named(error: GatewayError, { codec }: Endpoint, ex: Exchange): GatewayError {
  const { param, message } = error
  const name = param === null ? null : (codec.fieldOf?.(param, ex) ?? param)
  if (param === null || name === param) return error
  return error.with({ param: name, message: message.startsWith(param) ? name + message.slice(param.length) : message })
}
