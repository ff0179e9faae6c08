/** Circuits that open in all workers of a machine when one worker opens its own. Each worker closes its own again. */
import type { CircuitPolicy, Opened } from '../../core/ports.ts'
import { type CircuitClock, MemoryCircuits } from '../memory/circuits.ts'

/** An opening with its duration, for one organization or, with null, for all. */
export interface OpenedCircuit {
  readonly key: string
  readonly ms: number
  readonly org: string | null
}

/** The circuits of this worker, each of which is sent when it opens. */
export class SharedCircuits extends MemoryCircuits {
  readonly #tell: (circuit: OpenedCircuit) => void

  /** `tell` sends to the other workers. */
  constructor(tell: (circuit: OpenedCircuit) => void, clock?: CircuitClock) {
    super(clock)
    this.#tell = tell
  }

  override failed(key: string, policy: CircuitPolicy, org: string): Opened {
    return this.#opened(key, org, super.failed(key, policy, org))
  }

  override trip(key: string, policy: CircuitPolicy, org: string | null): Opened {
    return this.#opened(key, org, super.trip(key, policy, org))
  }

  override cool(key: string, ms: number, org: string | null): Opened {
    return this.#opened(key, org, super.cool(key, ms, org))
  }

  /** Applies an opening of another worker. */
  learn({ key, ms, org }: OpenedCircuit): void {
    super.cool(key, ms, org)
  }

  #opened(key: string, org: string | null, opened: Opened): Opened {
    const whose = opened === 'everyone' ? null : org
    if (opened !== undefined) this.#tell({ key, ms: this.openMs(key, whose), org: whose })
    return opened
  }
}
