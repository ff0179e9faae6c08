/** Circuits that open for all workers of a machine when one of them opens its own. Each closes its own again. */
import type { CircuitPolicy, CircuitState, Circuits } from '../../core/ports.ts'

export class SharedCircuits implements Circuits {
  readonly #own: Circuits
  readonly #tell: (key: string, ms: number) => void

  /** `tell` reaches the other workers. */
  constructor(own: Circuits, tell: (key: string, ms: number) => void) {
    this.#own = own
    this.#tell = tell
  }

  state(key: string): CircuitState {
    return this.#own.state(key)
  }

  failing(key: string): boolean {
    return this.#own.failing(key)
  }

  openMs(key: string): number {
    return this.#own.openMs(key)
  }

  begin(key: string): void {
    this.#own.begin(key)
  }

  succeeded(key: string): void {
    this.#own.succeeded(key)
  }

  failed(key: string, policy: CircuitPolicy): boolean {
    return this.#opened(key, this.#own.failed(key, policy))
  }

  trip(key: string, policy: CircuitPolicy): boolean {
    return this.#opened(key, this.#own.trip(key, policy))
  }

  cool(key: string, ms: number): void {
    this.#own.cool(key, ms)
    this.#tell(key, ms)
  }

  left(key: string): void {
    this.#own.left(key)
  }

  /** What another worker has told. */
  learn(key: string, ms: number): void {
    this.#own.cool(key, ms)
  }

  #opened(key: string, opened: boolean): boolean {
    if (opened) this.#tell(key, this.#own.openMs(key))
    return opened
  }
}
