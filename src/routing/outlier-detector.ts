/** Which targets are tried last for now: those with an open circuit, and those that fell silent before any deadline. */
import type { CircuitState, Circuits } from '../core/ports.ts'
import { perObject } from '../lib/per-object.ts'

/** So many wait for an offer, none was answered since the first of them began, and that one is overdue. */
const MIN_WAITING_STREAMS = 5
/** Maximum weight of one organization: half of what silences an offer for all. */
const MAX_PER_TENANT = Math.ceil(MIN_WAITING_STREAMS / 2)

/** Wraps the circuits: an offer is `open` also while several of its answers are late and none has come since. */
export class OutlierDetector implements Pick<Circuits, 'state' | 'failing'> {
  readonly #circuits: Circuits
  /** When the answers are due of those that have waited since the offer's last answer, by offer and organization. */
  readonly #due = new Map<string, Map<string, number[]>>()

  constructor(circuits: Circuits) {
    this.#circuits = circuits
  }

  state(key: string, org: string | null): CircuitState {
    return this.#isSilent(key, org) ? 'open' : this.#circuits.state(key, org)
  }

  failing(key: string, org: string | null): boolean {
    return this.#circuits.failing(key, org)
  }

  /** Begins an attempt whose answer is late after `ms`. Returns the token for `ended`. */
  began(offer: string, ms: number, org: string): number {
    const due = performance.now() + ms
    let waiting = this.#due.get(offer)
    if (!waiting) {
      waiting = new Map()
      this.#due.set(offer, waiting)
    }
    const own = waiting.get(org)
    if (own) own.push(due)
    else waiting.set(org, [due])
    return due
  }

  /** The offer has answered an attempt, of any organization. */
  answered(offer: string): void {
    this.#due.delete(offer)
  }

  /** An attempt has ended without an answer. */
  ended(offer: string, due: number, org: string): void {
    const waiting = this.#due.get(offer)
    const own = waiting?.get(org)
    const at = own?.indexOf(due) ?? -1
    if (at < 0) return
    own!.splice(at, 1)
    if (own!.length === 0) waiting!.delete(org)
    if (waiting!.size === 0) this.#due.delete(offer)
  }

  /** A failure counts for the organization that saw it, and for all once two of them have. */
  #isSilent(offer: string, org: string | null): boolean {
    const waiting = this.#due.get(offer)
    if (!waiting) return false
    const now = performance.now()
    const own = org === null && waiting.size === 1 ? waiting.values().next().value : waiting.get(org ?? '')
    if (own && own.length >= MIN_WAITING_STREAMS && own[0]! <= now) return true
    if (waiting.size < 2) return false
    let count = 0
    for (const due of waiting.values()) {
      if (due[0]! <= now) count += Math.min(MAX_PER_TENANT, due.length)
      if (count >= MIN_WAITING_STREAMS) return true
    }
    return false
  }
}

/** Returns the same detector on every call, so that filters of a new configuration know the running requests. */
export const outlierDetectorOf = perObject((circuits: Circuits) => new OutlierDetector(circuits))
