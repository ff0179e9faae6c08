/** The end of every inference chain: send, classify, decode, commit. Filters get events, never provider bytes. */
import { undelivered } from '../core/answer-bounds.ts'
import { Cancellation } from '../core/cancel.ts'
import { firstEventMs } from '../core/catalog.ts'
import { asError, errors, type GatewayError } from '../core/error.ts'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Reply } from '../core/filter.ts'
import type { MemoryBudget } from '../core/memory-budget.ts'
import { partUsage } from '../core/part-usage.ts'
import { isUnmeasured, mayCallTools } from '../core/requests.ts'
import type { RequestPart, Target } from '../core/translator.ts'
import type { Mask } from '../lib/mask.ts'
import { turns } from '../lib/turns.ts'
import { Answer } from './answer.ts'
import { type AnswerLease, AnswerMemory } from './answer-memory.ts'
import { type AnsweredRequest, type AnswerReading, readingOf } from './answer-reading.ts'
import type { SignedRequest } from './auth/strategy.ts'
import { waitFor } from './auth/wait.ts'
import { BodyMemory } from './body-memory.ts'
import { bodyOf, isMadeInSteps } from './content.ts'
import { decoded, type PlainSource } from './encoding.ts'
import { chargedEvents } from './failed-answer.ts'
import { fannedOut, type PartReceipt } from './fan-out.ts'
import { FollowUps } from './follow-ups.ts'
import { HeldAnswer } from './held-answer.ts'
import { providerError, readErrorBody } from './provider-error.ts'
import { ProviderFetcher } from './provider-fetcher.ts'
import { maskOfSent, sign } from './sign.ts'
import type { Transport } from './transport.ts'
import type { UpstreamRequest } from './upstream-request.ts'
import type { UpstreamResponse } from './upstream-response.ts'

/** Of what an answer of several takes while it is read, what it keeps: one copy, or a file's base64 without its bytes. */
const KEPT = 4 / 7
/** A job is begun within this time. */
const CREATE_MS = 120_000

/** One request on its way: the exchange's own, or one of several that stand for it. */
interface DispatchedRequest extends AnsweredRequest, Pick<RequestPart, 'request'> {
  readonly signal: Cancellation
  readonly receipt: UpstreamRequest['receipt']
  /** Of the answers of the same exchange, where it has several. */
  readonly leases: AnswerLease[] | undefined
  /** What came of an answer that failed, and is charged. */
  billed: readonly Event[] | undefined
}

/** An answer whose beginning is here. */
interface OpenAnswer {
  readonly answer: Answer
  readonly reading: AnswerReading
  readonly incoming: UpstreamResponse
  readonly lease: AnswerLease
  readonly mask: Mask | undefined
}

/**
 * Resolves once the first event that a client can see is there (the commit point); until then every failure is a
 * GatewayError that `route` may answer with another target. After it, failures are `error` events.
 */
export function dispatch(
  transport: Transport,
  budget: MemoryBudget,
  fetcher: ProviderFetcher = new ProviderFetcher([]),
): (ex: Exchange) => Promise<Reply> {
  const memory = new AnswerMemory(budget)
  const followUps = new FollowUps(transport, fetcher)

  const open = async (call: DispatchedRequest): Promise<OpenAnswer> => {
    const { ex, signal } = call
    const sent: Sent = { mask: undefined }
    const incoming = await send(transport, call, sent)
    const { mask } = sent
    const { tenant } = ex
    const most = ex.operation.answerBytes
    const lease = memory.lease(tenant, signal, most, call.leases)
    let source: PlainSource | undefined
    let answer: Answer | undefined
    let isUnary = false
    try {
      if (incoming.status >= 400) throw await errorOf(incoming, ex, mask)
      if (incoming.status !== 200) throw errors.invalidAnswer(`its status is ${incoming.status}`, incoming.status)
      source = decoded(incoming, incoming.header('content-encoding'))
      const reading = readingOf(incoming.header('content-type'), call)
      const inTurn = reading.kind === 'bytes' ? undefined : { turns, tenant, isStream: reading.kind === 'stream' }
      const { framing, decoder } = reading
      isUnary = reading.kind === 'unary'
      answer = new Answer({
        incoming,
        source,
        framing,
        decoder,
        lease,
        most,
        isHeld: call.isWhole || ex.endpoint.codec.holdsAnswers === true,
        mayCallTools: mayCallTools(ex),
        inTurn,
        mask,
        seals: ex.policy?.seals.answer(),
      })
      await answer.commit(call.isWhole)
      lease.wasRead()
      return { answer, reading, incoming, lease, mask }
    } catch (thrown) {
      const error = asError(thrown)
      if (answer && source) {
        const decoder = isUnary ? () => readingOf(incoming.header('content-type'), call).decoder : undefined
        const isText = ex.operation.output !== undefined
        call.billed = await chargedEvents({ answer, source, lease, tenant, decoder, isText, signal }, error)
      }
      source?.free?.()
      incoming.destroy()
      lease.release()
      if (call.billed) throw undelivered(error)
      throw error.billed ? error.with({ failover: true, billed: false }) : error
    }
  }

  /** All events of an answer whose first ones are here. */
  const followed = async (call: DispatchedRequest, { answer, reading, lease, mask }: OpenAnswer): Promise<Event[]> => {
    const { ex, target, signal } = call
    const first = answer.pending
    answer.release()
    return followUps.all(first, {
      target,
      decoder: reading.decoder,
      signal,
      lease,
      mask,
      cancellable: isCancellable(ex, target),
      tenant: ex.tenant,
      requestId: ex.id,
      remainingMs: () => remainingMs(ex, target),
    })
  }

  const held = async (ex: Exchange, leases: readonly AnswerLease[], whole: Promise<Event[]>): Promise<Reply> => {
    const release = () => {
      for (const lease of leases) lease.release()
    }
    try {
      const events = await whole
      // Parts have receipts of their own.
      ex.atProvider = true
      answered(ex)
      return { status: 200, headers: [], events: new HeldAnswer(events, release) }
    } catch (thrown) {
      release()
      throw thrown
    }
  }

  return async ex => {
    const target = ex.target!
    ex.timings.sent = performance.now()
    ex.atProvider = false
    const { signal } = ex
    const { parts } = ex.outbound
    if (parts) {
      const leases: AnswerLease[] = []
      const bodies = new BodyMemory(() => budget.lease(ex.tenant))
      const send = async ({ request, input, characters }: RequestPart, signal: Cancellation, receipt: PartReceipt) => {
        const call: DispatchedRequest = {
          ex,
          target,
          request,
          input,
          signal,
          receipt,
          isWhole: true,
          leases,
          billed: undefined,
        }
        try {
          const opened = await bodies.during(characters, () => open(call))
          const events = await followed(call, opened)
          opened.lease.keep(KEPT)
          return events
        } catch (thrown) {
          const error = asError(thrown)
          if (error.billed) return [...(call.billed ?? []), { type: 'error', error } satisfies Event]
          throw thrown
        }
      }
      const charge = ex.answeredInPart.bind(ex)
      const usageOf = partUsage.bind(undefined, ex)
      return held(ex, leases, fannedOut(parts, ex.outbound.fanOut!, signal, { send, charge, usageOf }))
    }
    const isJob = ex.operation.job !== undefined
    // A job that has begun at a provider continues, with or without its caller.
    const own = isJob ? new Cancellation() : signal
    const call: DispatchedRequest = {
      ex,
      target,
      request: ex.outbound.request!,
      input: ex.request!,
      signal: own,
      receipt: ex,
      isWhole: !ex.streaming,
      leases: undefined,
      billed: undefined,
    }
    let opened: OpenAnswer
    try {
      opened = await open(call)
    } catch (thrown) {
      if (call.billed) ex.failedWith(call.billed, asError(thrown))
      throw thrown
    }
    const { answer, incoming, reading, lease } = opened
    if (goesOn(answer.pending)) return held(ex, [lease], followed(call, opened))
    incoming.committed(reading.kind !== 'unary')
    answered(ex)
    return { status: 200, headers: [], events: answer }
  }
}

/** Of the time of all attempts together. */
const remainingMs = ({ timings }: Exchange, { provider }: Target): number =>
  provider.timeouts.total - (performance.now() - timings.read)

/** Whether more must be read before the answer is whole. */
function goesOn(events: readonly Event[]): boolean {
  const type = events.at(-1)?.type
  return type === 'wait' || type === 'fetch'
}

function answered(ex: Exchange): void {
  ex.committed()
  ex.timings.answered = performance.now()
}

/** What is known once the request is signed. */
interface Sent {
  /** Of its credential. */
  mask: Mask | undefined
}

/** Signs the request and sends it. Nothing here holds the body while the answer is waited for: it exists once then. */
function send(
  transport: Transport,
  { ex, target, request, signal, receipt }: DispatchedRequest,
  sent: Sent,
): Promise<UpstreamResponse> {
  const { provider } = target
  const { timeouts } = provider
  const isJob = ex.operation.job !== undefined
  // A job is never created twice: no socket is used that may have gone stale.
  const fresh = isJob || isAgain(ex, target)
  const { tenant } = ex
  const call = (signed: SignedRequest) => {
    const { method, baseUrl, path, headers, body } = signed
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
  const content = bodyOf(request, ex.input.rawStrings)
  const signed = isMadeInSteps(content)
    ? turns.run(tenant, content).then(made => sign(target, request, ex.id, made))
    : sign(target, request, ex.id, content)
  return signed instanceof Promise ? waitFor(signed, remainingMs(ex, target), signal).then(call) : call(signed)
}

/**
 * What is charged by characters needs no report: its provider is left at once. What content of unknown size costs is
 * known by a report alone, which is waited for.
 */
const isCancellable = (ex: Exchange, { mapping }: Target): boolean | undefined =>
  isUnmeasured(ex) ? false : (mapping.cancellable ?? (ex.isCountedAhead || undefined))

/** A target is called once, but again where its socket had gone stale. */
const isAgain = ({ attempts }: Exchange, { mapping, credential, region }: Target): boolean =>
  attempts.some(
    ({ target }) => target.mapping === mapping && target.credential === credential && target.region === region,
  )

/** Its status says what happened; what can be read of its body says more. */
async function errorOf(incoming: UpstreamResponse, ex: Exchange, mask: Mask | undefined): Promise<GatewayError> {
  const body: Buffer[] = []
  const header = (name: string) => incoming.header(name)
  try {
    await readErrorBody(decoded(incoming, header('content-encoding')), body)
  } catch (thrown) {
    if (ex.signal.reason) throw thrown
  }
  return providerError({ status: incoming.status, header }, Buffer.concat(body), ex.target!, ex.tenant, mask)
}
