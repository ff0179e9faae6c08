/** Reads what follows a provider's first answer: states of a job, and files (docs/contract.md#polled-answers). */

import type { Cancellation } from '../core/cancel.ts'
import type { Event } from '../core/event.ts'
import type { Target } from '../core/translator.ts'
import type { Decoder } from '../core/wire.ts'
import type { Fetched, Fetcher } from '../egress/fetcher.ts'
import { followRedirects, providerAddressError } from '../egress/redirects.ts'
import { checkAnswer, STATE_BOUNDS, undelivered } from '../json/answer-bounds.ts'
import { ByteBuffer } from '../lib/byte-buffer.ts'
import { asAnswerError, asError, errors, GatewayError } from '../lib/error.ts'
import type { MemoryLease } from '../limits/memory.ts'
import { scheduler } from '../limits/scheduler.ts'
import type { Mask } from '../secrets/mask.ts'
import { upstreamErrorOf } from '../wire/upstream-error.ts'
import { decoded, type PlainSource } from './encoding.ts'
import { AnswerMask, maskedError } from './masking.ts'
import { Polling } from './polling.ts'
import { retryAfterMs } from './provider-call.ts'
import { sign, waitFor } from './sign.ts'
import type { Transport } from './transport.ts'
import type { UpstreamRequest } from './upstream-request.ts'

const MAX_STATE_BYTES = 1024 * 1024
const MAX_FILE_BYTES = 64 * 1024 * 1024
/** Waits after a failed status request, in milliseconds. */
const BACK_OFF = { first: 250, factor: 2, most: 8_000 }
/** Tries of a file; a state is looked for until the request's time is over. */
const MAX_TRIES = 3
/** A file's bytes, and its base64. */
const COPIES = 7 / 3

type Next = Extract<Event, { type: 'wait' | 'fetch' }>

/** The attempt whose answer goes on. */
interface PolledAttempt {
  readonly target: Target
  readonly decoder: Decoder
  readonly signal: Cancellation
  readonly lease: MemoryLease
  readonly mask: Mask | undefined
  readonly cancellable: UpstreamRequest['cancellable']
  readonly tenant: string
  readonly requestId: string
  remainingMs(): number
}

/** Answers the `wait` and `fetch` events of a decoder with what their addresses give, until it gives neither. */
export class ResultPoller {
  readonly #transport: Transport
  readonly #fetcher: Fetcher

  constructor(transport: Transport, fetcher: Fetcher) {
    this.#transport = transport
    this.#fetcher = fetcher
  }

  /**
   * All events of an answer that began with `events`. What made the answer is never sent again. A job whose client leaves
   * is polled to its end, since it costs nothing where its provider fails; where it is made, or its end is not seen within
   * the request's time, this rejects with the reason of the signal.
   */
  async all(events: readonly Event[], attempt: PolledAttempt): Promise<Event[]> {
    const polling = new Polling(attempt.signal, attempt.cancellable)
    polling.runs = events.at(-1)?.type === 'wait'
    polling.begin()
    try {
      return await this.#read(events, Object.assign({}, attempt, { signal: polling.signal }), polling)
    } catch (thrown) {
      throw polling.failure(asError(thrown))
    } finally {
      polling.end()
    }
  }

  async #read(events: readonly Event[], attempt: PolledAttempt, polling: Polling): Promise<Event[]> {
    const { decoder, mask } = attempt
    const masking = mask && new AnswerMask(mask)
    const kept: Event[] = []
    let batch = events
    for (;;) {
      for (const event of batch) {
        masking?.apply(event)
        if (event.type === 'error') throw event.error
        if (event.type !== 'wait' && event.type !== 'fetch') kept.push(event)
      }
      const next = batch.at(-1)
      if (next?.type !== 'wait' && next?.type !== 'fetch') return kept
      polling.runs = next.type === 'wait'
      // The finished result is charged, although its client has left.
      if (polling.hasLeft && !polling.runs) throw errors.aborted()
      if (next.type === 'wait') await pause(next.afterMs, attempt)
      const content = await this.#get(next, attempt)
      try {
        batch = await scheduler.run(attempt.tenant, () => decode(decoder, next, content))
      } catch (thrown) {
        throw asAnswerError(thrown)
      }
    }
  }

  /** A provider that is busy or gone for a moment still has the job. */
  async #get(next: Next, attempt: PolledAttempt): Promise<Buffer> {
    for (let tries = 1, delay = BACK_OFF.first; ; tries++, delay = Math.min(delay * BACK_OFF.factor, BACK_OFF.most)) {
      let failure: GatewayError
      let wait = delay
      try {
        const { status, header, content } = await this.#follow(next, attempt)
        if (status === 200) return content
        failure = await this.#providerError(next, status, content, attempt)
        if (status !== 429 && status < 500) throw failure
        wait = Math.max(wait, retryAfterMs(name => (name === 'retry-after' ? header(name) : undefined), '') ?? 0)
      } catch (thrown) {
        const isGone = thrown instanceof GatewayError && thrown.code === 'fetch_failed'
        if (!isGone || attempt.signal.reason) throw thrown
        failure = thrown
      }
      // The remaining time of the request may be enough for another provider.
      const isOver = wait >= attempt.remainingMs() || (next.type === 'fetch' && tries === MAX_TRIES)
      if (isOver) throw failure
      await pause(wait, attempt)
    }
  }

  async #providerError(
    next: Next,
    status: number,
    content: Buffer,
    { target, mask }: PolledAttempt,
  ): Promise<GatewayError> {
    if (next.type === 'fetch') return errors.invalidAnswer(`an address in it answers with status ${status}`, status)
    if (status < 400) return errors.invalidAnswer(`its status is ${status}`, status)
    const error = upstreamErrorOf(target, status, content)
    return mask ? maskedError(error, mask) : error
  }

  /** Every place is checked anew: the credential goes to the provider's own origin alone. */
  #follow({ type, url }: Next, attempt: PolledAttempt): Promise<Fetched> {
    const { provider, baseUrl = provider.baseUrl } = attempt.target
    const maxBytes = type === 'wait' ? MAX_STATE_BYTES : MAX_FILE_BYTES
    const get = (url: URL) => {
      const isOwn = url.origin === new URL(baseUrl).origin && url.username === '' && url.password === ''
      return isOwn ? this.#own(url, maxBytes, attempt) : this.#foreign(url, maxBytes, attempt)
    }
    return followRedirects(url, get)
  }

  async #own(url: URL, maxBytes: number, attempt: PolledAttempt): Promise<Fetched> {
    const { target, signal, lease, tenant, requestId } = attempt
    const { provider } = target
    const { timeouts } = provider
    const there = { ...target, baseUrl: url.origin }
    const request = { method: 'GET', path: url.pathname + url.search, body: {} } as const
    const signing = sign(there, request, requestId, { type: undefined, body: undefined })
    const { baseUrl, path, headers } =
      signing instanceof Promise ? await waitFor(signing, attempt.remainingMs(), signal) : signing
    const incoming = await this.#transport.send({
      provider,
      method: 'GET',
      baseUrl,
      path,
      headers,
      body: undefined,
      timeouts,
      firstEventMs: timeouts.firstEvent ?? attempt.remainingMs(),
      remainingMs: attempt.remainingMs(),
      signal,
      receipt: { atProvider: false },
      tenant,
    })
    let source: PlainSource | undefined
    try {
      source = decoded(incoming, incoming.header('content-encoding'))
      const content = new ByteBuffer()
      for (let batch = await source.take(); batch; batch = await source.take()) {
        for (const chunk of batch) {
          if (content.size + chunk.length > maxBytes) throw tooLarge(maxBytes)
          take(lease, chunk.length)
          content.add(chunk)
        }
      }
      incoming.release()
      return { status: incoming.status, header: name => incoming.header(name), content: content.take() }
    } catch (thrown) {
      incoming.destroy()
      throw thrown
    } finally {
      source?.free?.()
    }
  }

  async #foreign(url: URL, maxBytes: number, attempt: PolledAttempt): Promise<Fetched> {
    const { signal, lease } = attempt
    const controller = new AbortController()
    const abort = () => controller.abort()
    signal.listen(abort)
    try {
      return await this.#fetcher.read(url, {
        accept: '*/*',
        egress: attempt.target.provider.egress,
        maxBytes,
        tooLarge: () => tooLarge(maxBytes),
        take: bytes => take(lease, bytes),
        timeoutMs: Math.max(1, Math.ceil(attempt.remainingMs())),
        signal: controller.signal,
      })
    } catch (thrown) {
      throw signal.reason ?? providerAddressError(thrown)
    } finally {
      signal.ignore(abort)
    }
  }
}

/** The events of what stands at an address. */
function decode(decoder: Decoder, { type }: Next, bytes: Buffer): readonly Event[] {
  const data = type === 'wait' ? bytes.toString('utf8') : ''
  if (type === 'wait') checkAnswer(data, STATE_BOUNDS)
  const read = decoder.frame({ data, bytes })
  return decoder.done ? [...read, ...decoder.end()] : read
}

/** Takes memory for a file. The file was generated, so a refusal is charged. */
function take(lease: MemoryLease, bytes: number): void {
  if (!lease.grow(Math.ceil(bytes * COPIES))) throw undelivered(errors.overloaded())
}

/** Rejects when the exchange ends before, and when its time would be over. */
function pause(ms: number, attempt: PolledAttempt): Promise<void> {
  const { signal } = attempt
  const left = attempt.remainingMs()
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => {
        signal.ignore(abort)
        if (ms < left) resolve()
        else reject(errors.upstreamTimeout('total time'))
      },
      Math.max(0, Math.min(ms, left)),
    )
    const abort = () => {
      clearTimeout(timer)
      reject(signal.reason ?? errors.aborted())
    }
    signal.listen(abort)
  })
}

const tooLarge = (maxBytes: number): GatewayError =>
  errors.invalidAnswer(`the content at an address in it is larger than ${maxBytes} bytes`)
