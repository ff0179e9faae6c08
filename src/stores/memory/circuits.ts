/** Circuit breakers of one process. Only who has failed takes any room. */
import { LRUCache } from 'lru-cache'
import type { CircuitPolicy, CircuitState, Circuits } from '../../core/ports.ts'

const MAX_KEYS = 10_000

interface Circuit {
  /** Failures in a row. */
  failures: number
  /** Openings in a row. */
  openings: number
  /** No longer closed; until `until` open, then half-open. */
  broken: boolean
  until: number
  /** How long it was opened for the last time. */
  span: number
  /** A probe runs. */
  probed: boolean
}

export interface CircuitClock {
  /** Milliseconds, monotonic. */
  readonly now?: () => number
  /** From 0 to below 1. */
  readonly random?: () => number
}

export class MemoryCircuits implements Circuits {
  readonly #now: () => number
  readonly #random: () => number
  readonly #circuits = new LRUCache<string, Circuit>({ max: MAX_KEYS })

  constructor({ now = () => performance.now(), random = Math.random }: CircuitClock = {}) {
    this.#now = now
    this.#random = random
  }

  state(key: string): CircuitState {
    const circuit = this.#circuits.get(key)
    if (!circuit?.broken) return 'closed'
    return circuit.probed || circuit.until > this.#now() ? 'open' : 'half-open'
  }

  failing(key: string): boolean {
    const circuit = this.#circuits.get(key)
    return circuit !== undefined && (circuit.broken || circuit.failures > 0)
  }

  openMs(key: string): number {
    const circuit = this.#circuits.get(key)
    return circuit?.broken ? Math.max(0, circuit.until - this.#now()) : 0
  }

  begin(key: string): void {
    const circuit = this.#circuits.get(key)
    if (circuit?.broken && circuit.until <= this.#now()) circuit.probed = true
  }

  /** Who is open and answers all the same, because there was nobody else to ask, is probed next. */
  succeeded(key: string): void {
    const circuit = this.#circuits.get(key)
    if (!circuit) return
    const now = this.#now()
    circuit.failures = 0
    circuit.probed = false
    if (circuit.broken && circuit.until > now) circuit.until = now
    else if (circuit.broken) {
      circuit.broken = false
      circuit.until = now
    } else if (circuit.openings === 0) this.#circuits.delete(key)
  }

  /** What was under way when the circuit opened does not open it further. */
  failed(key: string, policy: CircuitPolicy): boolean {
    const circuit = this.#of(key)
    if (this.#isOpen(circuit)) return false
    circuit.failures++
    if (!circuit.broken && circuit.failures < policy.failures) return false
    this.#open(circuit, policy)
    return true
  }

  trip(key: string, policy: CircuitPolicy): boolean {
    const circuit = this.#of(key)
    if (this.#isOpen(circuit)) return false
    this.#open(circuit, policy)
    return true
  }

  cool(key: string, ms: number): void {
    const circuit = this.#of(key)
    circuit.broken = true
    circuit.probed = false
    circuit.until = Math.max(circuit.until, this.#now() + ms)
  }

  left(key: string): void {
    const circuit = this.#circuits.get(key)
    if (circuit) circuit.probed = false
  }

  #of(key: string): Circuit {
    let circuit = this.#circuits.get(key)
    if (!circuit) {
      circuit = { failures: 0, openings: 0, broken: false, until: 0, span: 0, probed: false }
      this.#circuits.set(key, circuit)
    }
    return circuit
  }

  #isOpen({ broken, until }: Circuit): boolean {
    return broken && until > this.#now()
  }

  /** Openings follow in a row when the circuit was closed no longer than it had been open before. */
  #open(circuit: Circuit, { baseMs, maxMs, jitter }: CircuitPolicy): void {
    const now = this.#now()
    if (!circuit.broken && now - circuit.until > circuit.span) circuit.openings = 0
    circuit.openings++
    circuit.span = Math.min(maxMs, baseMs * circuit.openings) * (1 + jitter * this.#random())
    circuit.broken = true
    circuit.probed = false
    circuit.until = now + circuit.span
  }
}
