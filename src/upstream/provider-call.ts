/** One call of a provider: signs a request of an exchange, sends it, and reads the refusal of one. */
import type { Cancellation } from '../core/cancel.ts'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import { firstEventMs } from '../core/offer.ts'
import type { Credential } from '../core/provider-settings.ts'
import type { Target } from '../core/translator.ts'
import type { RequestPart } from '../core/wire.ts'
import type { GatewayError } from '../lib/error.ts'
import { namedWaitMs } from '../lib/named-wait.ts'
import type { Mask } from '../secrets/mask.ts'
import { MAX_ERROR_BYTES, upstreamErrorOf } from '../wire/upstream-error.ts'
import type { AnswerLease } from './answer-memory.ts'
import { type AnsweredRequest, isCancellable } from './answer-reading.ts'
import type { SignedRequest } from './auth/strategy.ts'
import { bodyOf } from './content.ts'
import { decoded, type PlainSource } from './encoding.ts'
import { maskedError } from './masking.ts'
import { maskOfSent, sign, waitFor } from './sign.ts'
import type { Transport } from './transport.ts'
import type { UpstreamRequest } from './upstream-request.ts'
import type { UpstreamResponse } from './upstream-response.ts'

/** A job is begun within this time. */
const CREATE_MS = 120_000

/** Whether a provider refused the credential itself, which may have been rotated; 402 is about money. */
export const refusesCredential = (status: number, { code }: GatewayError): boolean =>
  code === 'upstream_credential' && status !== 402

/** Returns the credential that has taken the place of a refused one; undefined where none has. Never rejects. */
export type RenewCredential = (target: Target) => Promise<Credential | undefined>

/** One request on its way: the exchange's own, or one of several that stand for it. */
export interface ProviderCall extends AnsweredRequest, Pick<RequestPart, 'request'> {
  readonly signal: Cancellation
  readonly receipt: UpstreamRequest['receipt']
  /** Memory of the answers of one exchange, where it has several. */
  readonly leases: AnswerLease[] | undefined
  /** With another credential, where its own was refused and read again. */
  target: Target
  /** Events of a failed answer that is charged. */
  billed: readonly Event[] | undefined
}

/** Returns the time left for all attempts, in milliseconds. */
export const remainingMs = ({ timings }: Exchange, { provider }: Target): number =>
  provider.timeouts.total - (performance.now() - timings.read)

/** Facts of a signed request. */
export interface Sent {
  /** Mask of its credential. */
  mask: Mask | undefined
}

/** Signs the request and sends it. Nothing here holds the body while the answer is waited for: it exists once then. */
export function send(
  transport: Transport,
  { ex, target, request, signal, receipt }: ProviderCall,
  sent: Sent,
): Promise<UpstreamResponse> {
  const { provider } = target
  const { timeouts } = provider
  const isJob = ex.operation.job !== undefined
  // A job is never created twice: no socket is used that may have gone stale.
  const fresh = isJob || isAgain(ex, target)
  const { tenant } = ex.caller
  const call = (signed: SignedRequest) => {
    const { method, baseUrl, path, headers, body } = signed
    // Proxies may add to a trace: its headers are no part of a signature.
    if (ex.outbound.trace) headers.push(...ex.outbound.trace)
    sent.mask = maskOfSent(signed, provider)
    const usual = firstEventMs(target.mapping, ex.streaming)
    const first = isJob ? Math.min(usual, CREATE_MS) : usual
    return transport.send({
      provider,
      method,
      baseUrl,
      path,
      headers,
      body,
      timeouts,
      firstEventMs: first,
      remainingMs: remainingMs(ex, target),
      signal,
      receipt,
      cancellable: isCancellable(ex, target),
      tenant,
      fresh,
    })
  }
  const signed = ex.step(() => sign(target, request, ex.id, bodyOf(request, ex.input.rawStrings)))
  return signed instanceof Promise ? waitFor(signed, remainingMs(ex, target), signal).then(call) : call(signed)
}

/**
 * Sends a refused call again, once, with the credential that was read meanwhile. Throws its error where that is the same one. A
 * job is begun once: its provider is asked for it with the credential that began it.
 */
export async function sentAgain(
  transport: Transport,
  call: ProviderCall,
  sent: Sent,
  { refused, renewed }: { readonly refused: UpstreamResponse; readonly renewed: RenewCredential },
): Promise<UpstreamResponse> {
  const { ex, target, signal } = call
  const error = await errorOf(refused, ex, sent.mask).finally(() => refused.destroy())
  if (!refusesCredential(refused.status, error)) throw error
  const renewing = renewed(target)
  if (ex.operation.job !== undefined) throw error
  const credential = await waitFor(renewing, remainingMs(ex, target), signal).catch(() => undefined)
  if (!credential) throw error
  call.target = { ...target, credential }
  return send(transport, call, sent)
}

/** A target is called once, but again where its socket had gone stale. */
const isAgain = ({ attempts }: Exchange, { mapping, credential, region }: Target): boolean =>
  attempts.some(
    ({ target }) => target.mapping === mapping && target.credential === credential && target.region === region,
  )

/** Its status says what happened; what can be read of its body says more. */
export async function errorOf(incoming: UpstreamResponse, ex: Exchange, mask: Mask | undefined): Promise<GatewayError> {
  const body: Buffer[] = []
  const header = (name: string) => incoming.header(name)
  try {
    await readErrorBody(decoded(incoming, header('content-encoding')), body)
  } catch (thrown) {
    if (ex.signal.reason) throw thrown
  }
  return providerError({ status: incoming.status, header }, Buffer.concat(body), ex.target!, mask)
}

/** The head of a provider's error. */
interface ErrorHead {
  readonly status: number
  readonly header: (name: string) => string | undefined
}

/** The provider's error without the credential, and with the wait that it names. */
export function providerError(
  { status, header }: ErrorHead,
  body: Buffer,
  target: Target,
  mask: Mask | undefined,
): GatewayError {
  const reported = upstreamErrorOf(target, status, body)
  const error = mask ? maskedError(reported, mask) : reported
  const wait = retryAfterMs(header, error.detail ?? error.message)
  return wait === undefined ? error : error.with({ retryAfterMs: wait })
}

/** Adds what comes of an error's body to `into`, up to a bounded length. */
export async function readErrorBody(source: PlainSource, into: Buffer[]): Promise<void> {
  let size = 0
  try {
    for (let batch = await source.take(); batch && size < MAX_ERROR_BYTES; batch = await source.take()) {
      for (const chunk of batch) {
        into.push(chunk)
        size += chunk.length
      }
    }
  } finally {
    source.free?.()
  }
}

const MAX_RETRY_AFTER_MS = 24 * 60 * 60 * 1000

/**
 * The wait that a provider's error names (docs/contributing/edge-cases.md#errors E8): milliseconds from `retry-after-ms`,
 * `retry-after` (seconds or HTTP date) or the message; undefined for none.
 */
export function retryAfterMs(header: (name: string) => string | undefined, message: string): number | undefined {
  const candidates = [Number(header('retry-after-ms') ?? Number.NaN), seconds(header('retry-after'))]
  const wait = candidates.find(ms => Number.isFinite(ms) && ms > 0)
  return wait === undefined ? namedWaitMs(message) : Math.min(Math.ceil(wait), MAX_RETRY_AFTER_MS)
}

function seconds(value: string | undefined): number {
  if (value === undefined) return Number.NaN
  const plain = Number(value) * 1000
  return Number.isNaN(plain) ? Date.parse(value) - Date.now() : plain
}
