/** The end of every inference chain: send, classify, decode, commit. Filters get events, never provider bytes. */

import { Cancellation } from '../core/cancel.ts'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Reply } from '../core/reply.ts'
import type { Target } from '../core/translator.ts'
import type { RequestPart } from '../core/wire.ts'
import { Fetcher } from '../egress/fetcher.ts'
import { undelivered } from '../json/answer-bounds.ts'
import { asError, errors } from '../lib/error.ts'
import { HeldValues } from '../limits/held.ts'
import type { MemoryBudget, MemoryLease } from '../limits/memory.ts'
import { partUsage } from '../metering/meter.ts'
import { mayCallTools } from '../metering/requests.ts'
import type { Mask } from '../secrets/mask.ts'
import { Answer } from './answer.ts'
import { type AnswerLease, AnswerMemory } from './answer-memory.ts'
import { type AnswerReading, isCancellable, readingOf } from './answer-reading.ts'
import { decoded, type PlainSource } from './encoding.ts'
import { fannedOut, type PartReceipt } from './fan-out.ts'
import {
  errorOf,
  type ProviderCall,
  type RenewCredential,
  remainingMs,
  type Sent,
  send,
  sentAgain,
} from './provider-call.ts'
import { ResultPoller } from './result-poller.ts'
import type { Transport } from './transport.ts'
import type { UpstreamResponse } from './upstream-response.ts'

/**
 * Share of its memory that a read answer keeps, where several form one: one copy, or a file's base64 without its bytes.
 */
const KEPT_SHARE = 4 / 7

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
  fetcher: Fetcher = new Fetcher([]),
  renewed: RenewCredential = () => Promise.resolve(undefined),
): (ex: Exchange) => Promise<Reply> {
  const memory = new AnswerMemory(budget)
  const results = new ResultPoller(transport, fetcher)

  const open = async (call: ProviderCall): Promise<OpenAnswer> => {
    const { ex, signal } = call
    const sent: Sent = { mask: undefined }
    let incoming = await send(transport, call, sent)
    if (incoming.status >= 400) incoming = await sentAgain(transport, call, sent, { refused: incoming, renewed })
    const { mask } = sent
    const { tenant } = ex.caller
    const lease = memory.lease(tenant, signal, ex.operation.answerBytes, call.leases)
    let source: PlainSource | undefined
    let answer: Answer | undefined
    try {
      if (incoming.status >= 400) throw await errorOf(incoming, ex, mask)
      if (incoming.status !== 200) throw errors.invalidAnswer(`its status is ${incoming.status}`, incoming.status)
      source = decoded(incoming, incoming.header('content-encoding'))
      const reading = readingOf(incoming.header('content-type'), call, () => incoming.destroy())
      const { kind, framing, decoder } = reading
      answer = new Answer({
        incoming,
        source,
        framing,
        decoder,
        lease,
        isHeld: call.isWhole || ex.endpoint.codec.holdsAnswers === true,
        mayCallTools: mayCallTools(ex),
        isStream: kind === 'stream',
        tenant,
        mask,
        seals: ex.caller.policy?.seals.answer(),
      })
      await answer.commit(call.isWhole)
      lease.wasRead()
      return { answer, reading, incoming, lease, mask }
    } catch (thrown) {
      const error = asError(thrown)
      // Charges the text that the caller had the model write: by its report, else as far as it came.
      if (error.billed || error.excess === 'size') call.billed = answer?.pending
      source?.free?.()
      incoming.destroy()
      lease.release()
      if (call.billed) throw undelivered(error)
      throw error.billed ? error.with({ failover: true, billed: false }) : error
    }
  }

  /** All events of an answer whose first ones are here. */
  const followed = async (call: ProviderCall, { answer, reading, lease, mask }: OpenAnswer): Promise<Event[]> => {
    const { ex, target, signal } = call
    const first = answer.pending
    answer.release()
    return results.all(first, {
      target,
      decoder: reading.decoder,
      signal,
      lease,
      mask,
      cancellable: isCancellable(ex, target),
      tenant: ex.caller.tenant,
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
      ex.outbound.atProvider = true
      answered(ex)
      return { status: 200, headers: [], events: new HeldValues([events], release) }
    } catch (thrown) {
      release()
      throw thrown
    }
  }

  /** The answer to several requests that stand for one. */
  const inParts = (ex: Exchange, target: Target, parts: readonly RequestPart[]): Promise<Reply> => {
    const leases: AnswerLease[] = []
    const bodies = new BodyMemory(() => budget.lease(ex.caller.tenant))
    const sendPart = async (part: RequestPart, signal: Cancellation, receipt: PartReceipt) => {
      const { request, input, characters } = part
      const call: ProviderCall = {
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
        opened.lease.keep(KEPT_SHARE)
        return events
      } catch (thrown) {
        const error = asError(thrown)
        if (error.billed) return [...(call.billed ?? []), { type: 'error', error } satisfies Event]
        throw thrown
      }
    }
    const charge = ex.answeredInPart.bind(ex)
    const usageOf = partUsage.bind(undefined, ex)
    return held(ex, leases, fannedOut(parts, ex.outbound.fanOut!, ex.signal, { send: sendPart, charge, usageOf }))
  }

  return async ex => {
    const target = ex.target!
    ex.timings.sent = performance.now()
    ex.outbound.atProvider = false
    const { parts } = ex.outbound
    if (parts) return inParts(ex, target, parts)
    const isJob = ex.operation.job !== undefined
    // A job that has begun at a provider continues, with or without its caller.
    const signal = isJob ? new Cancellation() : ex.signal
    const call: ProviderCall = {
      ex,
      target,
      request: ex.outbound.request!,
      input: ex.request!,
      signal,
      receipt: ex.outbound,
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

/** Whether more must be read before the answer is whole. */
function goesOn(events: readonly Event[]): boolean {
  const type = events.at(-1)?.type
  return type === 'wait' || type === 'fetch'
}

function answered(ex: Exchange): void {
  ex.committed()
  ex.timings.answered = performance.now()
}

/**
 * Memory of the bodies of several requests that stand for one. As many are there at the same time as memory has room
 * for.
 */
export class BodyMemory {
  readonly #lease: () => MemoryLease
  readonly #sending = new Set<Promise<void>>()

  constructor(lease: () => MemoryLease) {
    this.#lease = lease
  }

  /**
   * Resolves like `send`, which begins once there is room for so many bytes. Throws 529 where there is none although
   * none of these requests is being sent.
   */
  async during<T>(bytes: number, send: () => Promise<T>): Promise<T> {
    const lease = this.#lease()
    while (!lease.grow(bytes)) {
      if (this.#sending.size === 0) throw errors.overloaded()
      await Promise.race(this.#sending)
    }
    const sent = send()
    const ended: Promise<void> = sent.then(ignored, ignored).then(() => {
      lease.release()
      this.#sending.delete(ended)
    })
    this.#sending.add(ended)
    return sent
  }
}

/** The caller of `during` gets it. */
const ignored = () => undefined
