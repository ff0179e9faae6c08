/** One answer of a provider as it comes in. */
import type { Dispatcher } from 'undici'
import type { Cancellation } from '../core/cancel.ts'
import { errors, type GatewayError } from '../core/error.ts'
import { Arrivals } from './arrivals.ts'
import type { Call } from './call.ts'
import { isOlder } from './pools.ts'

/** Unread bytes at which a provider is told to wait. */
const HIGH_WATER = 32 * 1024
/** How long a provider may still talk after its last event. */
const DRAIN_MS = 1000

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** The calls of a provider that something is expected of. */
export interface OpenCalls {
  count: number
}

/**
 * A clock bounds each phase (first event, then idle time between chunks) and with it the total time, which all attempts
 * share. Aborting the signal destroys the socket at once.
 */
export class Incoming implements Dispatcher.DispatchHandler {
  status = 0
  headers: Headers = {}
  readonly head: Promise<Incoming>

  /** Not the call itself: its body need not be kept until the answer has ended. */
  readonly #idleMs: number
  readonly #signal: Cancellation
  readonly #open: OpenCalls
  #settled = false
  /** On the monotonic clock, as is when the time of all attempts together is over. */
  readonly #began: number
  readonly #deadline: number
  #phase: NodeJS.Timeout
  #phaseName: 'first event' | 'idle' = 'first event'
  #resolveHead!: (incoming: Incoming) => void
  #rejectHead!: (error: GatewayError) => void
  readonly #arrivals = new Arrivals(() => this.#resume())
  #controller: Dispatcher.DispatchController | undefined
  #paused = false
  #ended = false
  #released = false
  /** Something has come back, early hints at least. */
  #heard = false
  #failed = false
  readonly #onAbort = () => this.#fail(this.#signal.reason ?? errors.aborted())

  /** Counts as one of `open` until nothing is expected of it any more. */
  constructor({ timeouts, remainingMs, signal }: Pick<Call, 'timeouts' | 'remainingMs' | 'signal'>, open: OpenCalls) {
    this.#idleMs = timeouts.idle
    this.#signal = signal
    this.#open = open
    open.count++
    this.head = new Promise((resolve, reject) => {
      this.#resolveHead = resolve
      this.#rejectHead = reject
    })
    this.#began = performance.now()
    this.#deadline = this.#began + remainingMs
    this.#phase = setTimeout(() => this.#expire(), Math.max(1, Math.min(timeouts.firstEvent, remainingMs)))
    signal.listen(this.#onAbort)
  }

  header(name: string): string | undefined {
    const value = this.headers[name]
    return Array.isArray(value) ? value[0] : value
  }

  /** All chunks that have arrived since the last call, waiting for at least one; undefined at the end. */
  take(): Promise<Buffer[] | undefined> {
    return this.#arrivals.take()
  }

  /** The first event is here: from now on only silence between chunks is timed. */
  committed(): void {
    clearTimeout(this.#phase)
    if (this.#ended || this.#failed) return
    this.#phaseName = 'idle'
    const remainingMs = this.#deadline - performance.now()
    this.#phase = setTimeout(() => this.#expire(), Math.max(1, Math.min(this.#idleMs, remainingMs)))
  }

  /** Cuts off an unfinished answer. */
  destroy(): void {
    if (!this.#ended) this.#fail(errors.aborted())
  }

  /**
   * The answer is complete as far as its wire goes: what still comes is read and dropped for a moment, so that the
   * socket can serve again; a provider that goes on talking is cut off.
   */
  release(): void {
    if (this.#ended || this.#failed) return
    this.#settle()
    this.#released = true
    this.#phase = setTimeout(() => this.#fail(errors.aborted()), DRAIN_MS)
    this.#phase.unref()
    this.#resume()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#failed) controller.abort(errors.aborted())
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    this.#heard = true
    // Buffers of what `headers` holds, which undici would keep until the answer has ended.
    Object.assign(controller, { rawHeaders: null })
    if (status < 200) return
    this.status = status
    this.headers = headers
    this.#resolveHead(this)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#released) return
    if (this.#phaseName === 'idle') this.#phase.refresh()
    if (this.#arrivals.bytes + chunk.length > HIGH_WATER && !this.#paused) {
      this.#paused = true
      controller.pause()
    }
    this.#arrivals.push(chunk)
    // Silence is for the phase clock; a provider that goes on talking is cut off here.
    if (performance.now() > this.#deadline) this.#fail(errors.upstreamTimeout('total time'))
  }

  onResponseEnd(): void {
    this.#ended = true
    this.#settle()
    this.#arrivals.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController, cause: Error): void {
    const stale = !this.#heard && isOlder(cause, this.#began)
    this.#fail(errors.unreachable(reason(cause), cause).with({ stale }))
  }

  #resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#controller?.resume()
  }

  #expire(): void {
    // A reader that does not read is not the provider's silence.
    if (performance.now() >= this.#deadline) this.#fail(errors.upstreamTimeout('total time'))
    else if (this.#paused) this.#phase.refresh()
    else this.#fail(errors.upstreamTimeout(this.#phaseName))
  }

  #fail(error: GatewayError): void {
    if (this.#failed || this.#ended) return
    this.#failed = true
    this.#settle()
    this.#controller?.abort(error)
    this.#rejectHead(error)
    this.#arrivals.fail(error)
  }

  #settle(): void {
    clearTimeout(this.#phase)
    if (!this.#settled) {
      this.#settled = true
      this.#open.count--
    }
    this.#signal.ignore(this.#onAbort)
  }
}

/** Why a connection failed, without addresses: a code where there is one. */
function reason(cause: Error): string {
  const code = (cause as { code?: unknown }).code
  if (typeof code !== 'string') return 'connection failed'
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'connection timed out'
  return code.startsWith('UND_ERR') ? 'the connection broke' : code
}
