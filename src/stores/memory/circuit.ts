/** One circuit breaker. All times are milliseconds of a monotonic clock. */
import type { CircuitPolicy, CircuitState } from '../../core/ports.ts'

/** Minimum time for which a probe keeps others out; otherwise the span for which the circuit was open. */
const PROBE_MS = 30_000

/** The circuit of one target, for one organization or for all. */
export class Circuit {
  /** Consecutive failures. */
  #failures = 0
  /** Consecutive openings. */
  #openings = 0
  /** Not closed: open until `#until`, then half-open. */
  #broken = false
  #until = 0
  /** Duration of the last opening. */
  #span = 0
  /** Until then a running probe keeps others out. */
  #probedUntil = Number.NEGATIVE_INFINITY
  /** Organization whose failure opened it; '' when unknown. */
  openedBy = ''

  get broken(): boolean {
    return this.#broken
  }

  get failing(): boolean {
    return this.#broken || this.#failures > 0
  }

  /** Whether it has no state worth keeping. */
  get sound(): boolean {
    return !this.failing && this.#openings === 0
  }

  isOpen(now: number): boolean {
    return this.#broken && this.#until > now
  }

  state(now: number): CircuitState {
    if (!this.#broken) return 'closed'
    return this.#until > now || this.#probedUntil > now ? 'open' : 'half-open'
  }

  openMs(now: number): number {
    return this.#broken ? Math.max(0, this.#until - now) : 0
  }

  begin(now: number): void {
    if (!this.#broken || this.#until > now || this.#probedUntil > now) return
    this.#probedUntil = now + Math.max(PROBE_MS, this.#span)
  }

  left(): void {
    this.#probedUntil = Number.NEGATIVE_INFINITY
  }

  /** An open circuit that succeeds, because no other target was left, is probed next. */
  succeeded(now: number): void {
    const wasOpen = this.isOpen(now)
    this.#failures = 0
    this.left()
    if (!this.#broken) return
    this.#until = now
    this.#broken = wasOpen
  }

  /** Returns whether this opened it. Requests in flight when it opened do not extend the opening. */
  failed(now: number, policy: CircuitPolicy, chance: number): boolean {
    if (this.isOpen(now)) return false
    this.#failures++
    if (!this.#broken && this.#failures < policy.failures) return false
    return this.trip(now, policy, chance)
  }

  /** Openings are consecutive when the circuit was closed no longer than it had been open before. */
  trip(now: number, { baseMs, maxMs, jitter }: CircuitPolicy, chance: number): boolean {
    if (this.isOpen(now)) return false
    if (!this.#broken && now - this.#until > this.#span) this.#openings = 0
    this.#openings++
    this.#span = Math.min(maxMs, baseMs * this.#openings) * (1 + jitter * chance)
    this.#broken = true
    this.left()
    this.#until = now + this.#span
    return true
  }

  cool(now: number, ms: number): void {
    this.#broken = true
    this.left()
    this.#until = Math.max(this.#until, now + ms)
  }
}
