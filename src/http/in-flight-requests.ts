/** The requests that are being served, and what is done for all of them now and then. */
import type { Socket } from 'node:net'
import type { Cancellation } from '../core/cancel.ts'
import type { Exchange } from '../core/exchange.ts'
import type { BodyGuard } from './body-guard.ts'
import type { ServedSink } from './sink.ts'

/** Bounds of requests in flight: times in milliseconds, the rate in bytes per second. */
export interface RequestLimits {
  /** A stream that says nothing for so long says a heartbeat; 0 for none. */
  readonly heartbeat: number
  /** A stream whose provider has sent no content for so long is begun all the same. */
  readonly hold: number
  /** For the whole of a request's body. */
  readonly request: number
  /** At which a body must come, and what waits for a client be taken. */
  readonly minRate: number
}

/** A request from its head to the end of its answer. `at` is its index in the list. */
export interface InFlightRequest {
  readonly ex: Exchange
  readonly signal: Cancellation
  readonly sink: ServedSink
  readonly guard: BodyGuard
  at: number
}

/** Looks at every request, in the time of the shortest timeout. */
const TICKS = 4
const MIN_TICK_MS = 10
const MAX_TICK_MS = 1000

/**
 * A plain list, and one timer for all: a timer for each request costs more than all that is done here. No Map: the
 * tables that a busy one leaves behind keep what was in them alive until the next full collection.
 */
export class InFlightRequests {
  readonly list: InFlightRequest[] = []
  readonly limits: RequestLimits
  readonly #recheck: (ex: Exchange) => void
  readonly #timer: NodeJS.Timeout
  readonly #ticksOfSilence: number

  /** `onTick` is called with every look at the requests, and `recheck` for each stream of a known caller. */
  constructor(limits: RequestLimits, onTick: () => void, recheck: (ex: Exchange) => void = () => undefined) {
    this.limits = limits
    this.#recheck = recheck
    const heartbeat = limits.heartbeat || Number.POSITIVE_INFINITY
    const shortest = Math.min(heartbeat, limits.hold, limits.request)
    const tickMs = Math.min(MAX_TICK_MS, Math.max(MIN_TICK_MS, shortest / TICKS))
    this.#ticksOfSilence = Math.ceil(heartbeat / tickMs)
    this.#timer = setInterval(() => {
      this.#look()
      onTick()
    }, tickMs)
    this.#timer.unref()
  }

  enter(ex: Exchange, signal: Cancellation, sink: ServedSink, guard: BodyGuard): InFlightRequest {
    const request = { ex, signal, sink, guard, at: this.list.length }
    this.list.push(request)
    return request
  }

  /** The last one takes its place. */
  leave({ at }: InFlightRequest): void {
    const last = this.list.pop()!
    if (last.at === at) return
    this.list[at] = last
    last.at = at
  }

  /** Returns the requests of one connection. */
  on(socket: Socket): InFlightRequest[] {
    return this.list.filter(({ sink }) => sink.socket === socket)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const now = performance.now()
    const { request, minRate, hold } = this.limits
    for (const { ex, sink, guard } of this.list) {
      if (guard.reading) guard.check(now, request, minRate)
      sink.check(now)
      if (ex.streaming && ex.caller.principal && !ex.answer.outcome && !ex.signal.aborted) this.#recheck(ex)
      const { heartbeat } = ex.endpoint.codec
      if (!heartbeat || !ex.streaming || ex.answer.outcome || heartbeat.isFor?.(ex) === false) continue
      if (sink.begun) sink.tick(heartbeat.text, this.#ticksOfSilence)
      else if (now - ex.timings.read >= hold) {
        ex.answer.status = 200
        sink.begin(heartbeat.contentType, ex.answer.headers, heartbeat.text)
      }
    }
  }
}
