/** Circuits that open in all workers of a machine when one worker opens its own. Each worker closes its own again. */
import type { CircuitPolicy, CircuitState, Circuits, Opened } from '../../core/ports.ts'

/** An opening with its duration, for one organization or, with null, for all. */
export interface OpenedCircuit {
  readonly key: string
  readonly ms: number
  readonly org: string | null
}

/** Delegates to the circuits of this worker, and sends each one that opens. */
export class SharedCircuits implements Circuits {
  readonly #own: Circuits
  readonly #tell: (circuit: OpenedCircuit) => void

  /** `tell` sends to the other workers. */
  constructor(own: Circuits, tell: (circuit: OpenedCircuit) => void) {
    this.#own = own
    this.#tell = tell
  }

  state(key: string, org: string | null): CircuitState {
    return this.#own.state(key, org)
  }

  failing(key: string, org: string | null): boolean {
    return this.#own.failing(key, org)
  }

  openMs(key: string, org: string | null): number {
    return this.#own.openMs(key, org)
  }

  begin(key: string, org: string): void {
    this.#own.begin(key, org)
  }

  succeeded(key: string, org: string): void {
    this.#own.succeeded(key, org)
  }

  failed(key: string, policy: CircuitPolicy, org: string): Opened {
    return this.#opened(key, org, this.#own.failed(key, policy, org))
  }

  trip(key: string, policy: CircuitPolicy, org: string | null): Opened {
    return this.#opened(key, org, this.#own.trip(key, policy, org))
  }

  cool(key: string, ms: number, org: string | null): Opened {
    return this.#opened(key, org, this.#own.cool(key, ms, org))
  }

  left(key: string, org: string): void {
    this.#own.left(key, org)
  }

  /** Applies an opening of another worker. */
  learn({ key, ms, org }: OpenedCircuit): void {
    this.#own.cool(key, ms, org)
  }

  #opened(key: string, org: string | null, opened: Opened): Opened {
    const whose = opened === 'everyone' ? null : org
    if (opened !== undefined) this.#tell({ key, ms: this.#own.openMs(key, whose), org: whose })
    return opened
  }
}
