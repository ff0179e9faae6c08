/** The end of every inference chain: send, classify, decode, commit. Nothing above it ever sees provider bytes. */
import { firstEventMs } from '../core/catalog.ts'
import { errors, type GatewayError } from '../core/error.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Reply } from '../core/filter.ts'
import type { MemoryBudget } from '../core/memory-budget.ts'
import { type Decoder, nativeFormOf, type Target } from '../core/translator.ts'
import type { Mask } from '../lib/mask.ts'
import { Answer } from './answer.ts'
import type { SignedRequest } from './auth/strategy.ts'
import { waitFor } from './auth/wait.ts'
import { bodyOf } from './content.ts'
import { decoded, type Source } from './encoding.ts'
import { BytesFraming } from './framing/bytes.ts'
import type { Framing } from './framing/framing.ts'
import { framingFor, mediaType } from './framing/index.ts'
import { maskedError } from './masking.ts'
import { retryAfterMs } from './retry-after.ts'
import { maskOfSent, sign } from './sign.ts'
import type { Transport } from './transport.ts'
import { Turns } from './turns.ts'
import type { UpstreamResponse } from './upstream-response.ts'

const MAX_ERROR_BYTES = 64 * 1024

/**
 * Resolves once the first event that a client can see is there (the commit point); until then every failure is a
 * GatewayError that `route` may answer with another target. After it, failures are `error` events.
 */
export function dispatch(transport: Transport, memory: MemoryBudget): (ex: Exchange) => Promise<Reply> {
  const turns = new Turns()
  return async ex => {
    const target = ex.target!
    ex.timings.sent = performance.now()
    ex.atProvider = false
    const sent: Sent = { mask: undefined }
    const incoming = await send(transport, ex, target, sent)
    const tenant = ex.principal?.orgId ?? ''
    const lease = memory.lease(tenant)
    try {
      if (incoming.status >= 400) throw await refusal(incoming, ex, sent.mask)
      if (incoming.status !== 200) throw errors.invalidAnswer(`its status is ${incoming.status}`, incoming.status)
      const source = decoded(incoming, incoming.header('content-encoding'))
      const reading = readingOf(incoming, ex, target)
      // Only what is parsed is worth a turn of its own; most of a large answer may pass as it is.
      const isParsed = reading.kind !== 'bytes' && !ex.operation.passesAnswers
      const inTurn = isParsed ? { turns, tenant } : undefined
      const answer = new Answer({
        incoming,
        source,
        framing: reading.framing,
        decoder: reading.decoder,
        lease,
        inTurn,
        mask: sent.mask,
        seals: ex.policy?.seals,
      })
      await answer.commit(!ex.streaming)
      incoming.committed(reading.kind !== 'unary')
      ex.committed()
      ex.timings.answered = performance.now()
      return { status: 200, headers: [], events: answer }
    } catch (thrown) {
      incoming.destroy()
      lease.release()
      throw thrown
    }
  }
}

/** How an answer is cut into frames, and what reads them. */
interface AnswerReading {
  readonly kind: 'stream' | 'unary' | 'bytes'
  readonly framing: Framing
  readonly decoder: Decoder
}

/** Throws a GatewayError for an answer of a type that the wire does not have. */
function readingOf(incoming: UpstreamResponse, ex: Exchange, target: Target): AnswerReading {
  const { translator } = target
  const contentType = incoming.header('content-type')
  const { bytes } = translator
  if (bytes && contentType !== undefined) {
    const type = mediaType(contentType)
    if (bytes.types.some(begin => type.startsWith(begin))) {
      return { kind: 'bytes', framing: new BytesFraming(), decoder: bytes.decoder(contentType, target, ex.request) }
    }
  }
  const { framing, mode } = framingFor(contentType, ex.streaming)
  const native = nativeFormOf(translator, ex.native)
  const decoder = native?.decoder?.(mode, target) ?? translator.decoder(mode, target, ex.request)
  return { kind: mode, framing, decoder }
}

/** What is known once the request is signed. */
interface Sent {
  /** Of its credential. */
  mask: Mask | undefined
}

/** Signs the request and sends it. Nothing here holds the body while the answer is waited for: it exists once then. */
function send(transport: Transport, ex: Exchange, target: Target, sent: Sent): Promise<UpstreamResponse> {
  const request = ex.outbound!
  const { provider } = target
  const { timeouts } = provider
  const remainingMs = () => timeouts.total - (performance.now() - ex.timings.read)
  const fresh = isAgain(ex, target)
  const { signal } = ex
  const tenant = ex.principal?.orgId ?? ''
  const call = (signed: SignedRequest) => {
    const { method, baseUrl, path, headers, body } = signed
    sent.mask = maskOfSent(signed, provider)
    const first = firstEventMs(target.mapping, ex.streaming)
    return transport.send({
      provider,
      method,
      baseUrl,
      path,
      headers,
      body,
      timeouts,
      firstEventMs: first,
      remainingMs: remainingMs(),
      signal,
      receipt: ex,
      tenant,
      fresh,
    })
  }
  const signed = sign(target, request, ex.id, bodyOf(request, ex.verbatim))
  return signed instanceof Promise ? waitFor(signed, remainingMs(), ex.signal).then(call) : call(signed)
}

/** A target is called once, but again where its socket had gone stale. */
const isAgain = ({ attempts }: Exchange, { mapping, credential, region }: Target): boolean =>
  attempts.some(
    ({ target }) => target.mapping === mapping && target.credential === credential && target.region === region,
  )

/** The provider's refusal. Its status says what happened; what can be read of its body says more. */
async function refusal(incoming: UpstreamResponse, ex: Exchange, mask: Mask | undefined): Promise<GatewayError> {
  const body: Buffer[] = []
  try {
    await read(decoded(incoming, incoming.header('content-encoding')), body)
  } catch (thrown) {
    if (ex.signal.reason) throw thrown
  }
  const text = Buffer.concat(body).subarray(0, MAX_ERROR_BYTES).toString('utf8')
  const told = ex.target!.translator.error(incoming.status, text, ex.target!)
  const error = mask ? maskedError(told, mask) : told
  const wait = retryAfterMs(name => incoming.header(name), error.message)
  return wait === undefined ? error : error.with({ retryAfterMs: wait })
}

/** Adds what comes to `into`, up to a bounded length. */
async function read(source: Source, into: Buffer[]): Promise<void> {
  let size = 0
  for (let batch = await source.take(); batch && size < MAX_ERROR_BYTES; batch = await source.take()) {
    for (const chunk of batch) {
      into.push(chunk)
      size += chunk.length
    }
  }
}
