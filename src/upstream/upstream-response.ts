/** One answer of a provider as it comes in. */
import type { Dispatcher } from 'undici'
import type { Cancellation } from '../core/cancel.ts'
import { MAX_INTERIM } from '../egress/single-client.ts'
import type { UpstreamSocket } from '../egress/socket.ts'
import { ProxyError } from '../egress/tunnel.ts'
import { CLIENT_CLOSED, errors, type GatewayError } from '../lib/error.ts'
import { timerMs } from '../lib/timer.ts'
import type { AbandonedAnswers } from './abandoned-answers.ts'
import { ChunkQueue, type Taken } from './chunk-queue.ts'
import type { PiecewiseBody } from './content.ts'
import type { InFlightCount } from './in-flight-count.ts'
import { type ReadCoalescer, Trickle } from './read-coalescer.ts'
import type { UpstreamRequest } from './upstream-request.ts'

/** Unread bytes from which reading pauses. */
const HIGH_WATER = 32 * 1024
/** Bytes of one answer that are read before other sockets are: one poll would read a full socket 32 times. */
const MAX_BYTES_AT_ONCE = 64 * 1024
/** How long, and how much, a provider may still talk after its last event. */
const DRAIN_MS = 1000
const DRAIN_BYTES = 256 * 1024
/** A provider may break off an answer that was not read for so long, which is seen when it is read again. */
const UNREAD_MS = 10_000
const SEEN_MS = 1000

/** How long a provider may be silent behind the finish reason of its answer, where `timeouts.idle` is longer. */
export const END_GRACE_MS = 1000

type Headers = Readonly<Record<string, string | string[] | undefined>>

/**
 * A clock bounds each phase (first event, then silence while a reader waits) and with it the total time, which all
 * attempts share. Aborting the signal destroys the socket at once, unless a client has left whose provider has all of
 * the request: then what is there within a moment is still read.
 */
export class UpstreamResponse implements Dispatcher.DispatchHandler {
  status = 0
  headers: Headers = {}
  /** Socket of the request; undefined until it is sent. */
  line: UpstreamSocket | undefined
  readonly head: Promise<UpstreamResponse>

  /** Not the call itself: its body need not be kept until the answer has ended. */
  #idleMs: number
  readonly #firstEventMs: number
  readonly #signal: Cancellation
  readonly #sending: PiecewiseBody | undefined
  readonly #open: InFlightCount
  #settled = false
  /** On the monotonic clock, as is when the time of all attempts together is over. */
  readonly #began: number
  #deadline: number
  #phase: 'first event' | 'idle' = 'first event'
  /** When this phase began, or the last bytes were taken. */
  #since: number
  /** Set once and moved only when it goes off: chunks come a thousand times more often. */
  #timer: NodeJS.Timeout
  #resolveHead!: (incoming: UpstreamResponse) => void
  #rejectHead!: (error: GatewayError) => void
  readonly #chunks = new ChunkQueue(taken => this.#taken(taken))
  readonly #coalescer: ReadCoalescer
  /** Joins the small pieces of a stream. */
  #trickle: Trickle | undefined
  #controller: Dispatcher.DispatchController | undefined
  /** When reading paused; undefined while it goes on. */
  #pausedAt: number | undefined
  /** When reading went on after `UNREAD_MS`. */
  #unreadUntil = Number.NEGATIVE_INFINITY
  /** Bytes read since other sockets were. */
  #readAtOnce = 0
  #isResting = false
  #ended = false
  #released = false
  #drained = 0
  /** Something has come back, early hints at least. */
  #answered = false
  /** Bytes that its socket had read before. */
  #readBefore = 0
  /** Answers before the one that counts. */
  #interim = 0
  #failed = false
  readonly #receipt: UpstreamRequest['receipt']
  readonly #tenant: string
  readonly #abandoned: AbandonedAnswers
  readonly #cancellable: boolean | undefined
  /** Bytes that may still come once the client has left; undefined while it is there. */
  #lingerBytes: number | undefined

  /** Is one of `open` until nothing is expected of it any more. `sending`: a body that goes out in pieces. */
  constructor(
    { timeouts, firstEventMs, remainingMs, signal, receipt, tenant, cancellable }: Omit<UpstreamRequest, 'body'>,
    sending: PiecewiseBody | undefined,
    open: InFlightCount,
    coalescer: ReadCoalescer,
    abandoned: AbandonedAnswers,
  ) {
    this.#idleMs = timeouts.idle
    this.#firstEventMs = firstEventMs
    this.#signal = signal
    this.#sending = sending
    this.#open = open
    this.#coalescer = coalescer
    this.#receipt = receipt
    this.#tenant = tenant
    this.#cancellable = cancellable
    this.#abandoned = abandoned
    this.head = new Promise((resolve, reject) => {
      this.#resolveHead = resolve
      this.#rejectHead = reject
    })
    this.#began = performance.now()
    this.#since = this.#began
    this.#deadline = this.#began + remainingMs
    this.#timer = this.#wakeAfter(Math.min(firstEventMs, timeouts.idle, remainingMs))
    signal.listen(this.#onAbort)
  }

  get hasFailed(): boolean {
    return this.#failed
  }

  header(name: string): string | undefined {
    const value = this.headers[name]
    return Array.isArray(value) ? value[0] : value
  }

  /** All chunks that have arrived since the last call, waiting for at least one; undefined at the end. */
  take(): Promise<Buffer[] | undefined> {
    return this.#chunks.take()
  }

  /** The first event is here: from now on only silence between chunks is timed, and those of a stream are gathered. */
  committed(streams: boolean): void {
    this.#timeSilence()
    if (streams) this.#trickle = new Trickle(this.#since)
  }

  /** The answer is complete but for its usage or terminator, which must come within `END_GRACE_MS`. */
  expectEnd(): void {
    this.#idleMs = Math.min(this.#idleMs, END_GRACE_MS)
    this.#timeSilence()
  }

  #timeSilence(): void {
    this.#phase = 'idle'
    this.#since = performance.now()
    if (this.#settled) return
    // It was set for another timeout, which may be longer.
    clearTimeout(this.#timer)
    this.#timer = this.#wakeAfter(Math.min(this.#idleMs, this.#deadline - this.#since))
  }

  /** Cuts off an unfinished answer. */
  destroy(): void {
    if (!this.#ended) this.#fail(errors.aborted())
  }

  /**
   * The answer is complete as far as its wire goes: what still comes is read and dropped for a moment, so that the
   * socket can serve again; a provider that goes on talking, or has not read its request, is cut off.
   */
  release(): void {
    if (this.#ended || this.#failed) return
    if (!this.#isSent) {
      this.destroy()
      return
    }
    this.#settle()
    this.#released = true
    this.#timer = setTimeout(() => this.#fail(errors.aborted()), DRAIN_MS)
    this.#timer.unref()
    this.#resume()
    const socket = this.line?.socket
    if (socket) this.#coalescer.wake(socket)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#receipt.connectMs = performance.now() - this.#began
    this.#readBefore = this.line?.socket?.bytesRead ?? 0
    if (this.#failed) controller.abort(errors.aborted())
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    this.#answered = true
    this.#receipt.atProvider = true
    // Buffers of what `headers` holds, which undici would keep until the answer has ended.
    Object.assign(controller, { rawHeaders: null })
    if (status < 200) {
      if (++this.#interim > MAX_INTERIM) this.#fail(errors.upstreamTimeout('it sends interim answers only'))
      return
    }
    this.status = status
    this.headers = headers
    this.#resolveHead(this)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#released) {
      this.#drained += chunk.length
      if (this.#drained > DRAIN_BYTES) this.#fail(errors.aborted())
      return
    }
    if (this.#lingerBytes !== undefined) {
      this.#lingerBytes -= chunk.length
      if (this.#lingerBytes < 0) {
        this.#fail(errors.aborted())
        return
      }
    }
    if (this.#chunks.bytes + chunk.length > HIGH_WATER) this.#pause(controller)
    this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    // If a provider answers before it reads, its socket would keep this request and those behind it.
    if (!this.#isSent) this.line?.socket?.destroy()
    this.#ended = true
    this.#settle()
    this.#chunks.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController, cause: Error): void {
    if (performance.now() - this.#unreadUntil < SEEN_MS) this.#signal.abort(errors.readTooSlowly())
    const { connectedAt = Number.POSITIVE_INFINITY, socket } = this.line ?? {}
    const stale = connectedAt < this.#began && socket?.bytesRead === this.#readBefore
    this.#fail(errors.unreachable(reason(cause), cause).with({ stale }))
  }

  /** The reader has all that there was; if it waits from now on, then for the provider. */
  #taken(taken: Taken): void {
    if (!this.#rests(taken.bytes)) this.#resume()
    if (this.#phase !== 'idle') return
    this.#since = performance.now()
    const socket = this.line?.socket
    if (this.#trickle && !this.#ended && socket) this.#coalescer.delivered(socket, this.#trickle, taken, this.#since)
  }

  #pause(controller: Dispatcher.DispatchController | undefined): void {
    if (this.#pausedAt !== undefined) return
    this.#pausedAt = performance.now()
    controller?.pause()
  }

  /** Counts bytes that were taken. True where other sockets are read before this one goes on. */
  #rests(bytes: number): boolean {
    this.#readAtOnce += bytes
    if (this.#readAtOnce < MAX_BYTES_AT_ONCE || this.#isResting || this.#ended || this.#failed) return this.#isResting
    this.#isResting = true
    this.#pause(this.#controller)
    setImmediate(UpstreamResponse.#goOn, this)
    return true
  }

  /** Static, since few answers need it. */
  static #goOn(this: void, response: UpstreamResponse): void {
    response.#isResting = false
    response.#readAtOnce = 0
    // Where more is unread, its reader resumes.
    if (response.#chunks.bytes <= HIGH_WATER) response.#resume()
  }

  #resume(): void {
    if (this.#pausedAt === undefined || this.#ended || this.#failed) return
    const now = performance.now()
    if (this.#trickle && now - this.#pausedAt > UNREAD_MS) this.#unreadUntil = now
    this.#pausedAt = undefined
    this.#controller?.resume()
  }

  /** For how long the provider may still say nothing. */
  #silenceMs(now: number): number {
    return this.#since + (this.#phase === 'idle' ? this.#idleMs : this.#firstEventMs) - now
  }

  #wakeAfter(ms: number): NodeJS.Timeout {
    return setTimeout(this.#look, timerMs(Math.max(1, ms)))
  }

  readonly #look = (): void => {
    const now = performance.now()
    // A reader that does not read is not the provider's silence.
    if (this.#chunks.bytes > 0 || this.#isResting) this.#since = now
    const remainingMs = this.#deadline - now
    // The client has left: an incomplete answer no longer counts as the provider's failure.
    if (this.#lingerBytes !== undefined) {
      const leftMs = this.#hasSlot ? remainingMs : Math.min(remainingMs, this.#silenceMs(now))
      if (leftMs <= 0) this.#fail(errors.aborted())
      else this.#timer = this.#wakeAfter(leftMs)
      return
    }
    if (remainingMs <= 0 && this.#trickle && this.#chunks.bytes > 0) {
      this.#signal.abort(errors.readTooSlowly())
      return
    }
    const phaseMs = this.#silenceMs(now)
    if (remainingMs <= 0) this.#fail(errors.upstreamTimeout('total time'))
    else if (phaseMs <= 0) this.#fail(errors.upstreamTimeout(this.#phase))
    else this.#timer = this.#wakeAfter(Math.min(phaseMs, remainingMs))
  }

  /** The client has left, or the gateway is to give up, also what it reads on. */
  readonly #onAbort = (): void => {
    const { reason } = this.#signal
    const isReadOn = this.#cancellable !== true && this.#lingerBytes === undefined
    const hasLeft = reason?.status === CLIENT_CLOSED && isReadOn
    this.#receipt.atProvider ||= this.#isSent
    // Reads to the end where only a report tells the usage, as if the client had stayed.
    const isBounded = this.#cancellable !== false
    if (
      !hasLeft ||
      !this.#receipt.atProvider ||
      this.#settled ||
      (isBounded && !this.#abandoned.acquire(this.#tenant))
    ) {
      this.#fail(reason ?? errors.aborted())
      return
    }
    this.#lingerBytes = isBounded ? this.#abandoned.bytes : Number.POSITIVE_INFINITY
    const now = performance.now()
    if (isBounded) this.#deadline = now + this.#abandoned.ms
    clearTimeout(this.#timer)
    this.#look()
  }

  /** It is read on in one of the slots for that, which bound how long and how much. */
  get #hasSlot(): boolean {
    return this.#lingerBytes !== undefined && this.#cancellable !== false
  }

  /** Whether the request is written whole and the buffer of its socket is empty. */
  get #isSent(): boolean {
    const isOut = this.#sending?.isSent ?? this.#controller !== undefined
    return isOut && this.line?.socket?.writableLength === 0
  }

  #fail(error: GatewayError): void {
    if (this.#failed || this.#ended) return
    this.#failed = true
    const failure = this.#answered || this.#isSent ? error.with({ sent: true }) : error
    this.#settle()
    if (this.#controller) this.#controller.abort(error)
    else this.line?.cancelConnect(error)
    this.#rejectHead(failure)
    this.#chunks.fail(failure)
  }

  #settle(): void {
    clearTimeout(this.#timer)
    if (!this.#settled) {
      this.#settled = true
      if (this.#hasSlot) this.#abandoned.release(this.#tenant)
      this.#open.end(this.#tenant)
    }
    this.#signal.ignore(this.#onAbort)
  }
}

/** Why a connection failed, without addresses but that of a proxy: a code where there is one. */
function reason(cause: Error): string {
  if (cause instanceof ProxyError) return cause.message
  const code = (cause as { code?: unknown }).code
  if (typeof code !== 'string') return 'connection failed'
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'connection timed out'
  return code.startsWith('UND_ERR') ? 'the connection broke' : code
}
