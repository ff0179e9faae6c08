/** Who is left alone for now: whose circuit is open, and who has fallen silent, long before any deadline has passed. */
import type { CircuitState, Circuits } from '../core/ports.ts'

/** So many wait for an offer, nobody was answered since the first of them began, and that one is overdue. */
const WAITING = 5

export class Standing implements Pick<Circuits, 'state' | 'failing'> {
  readonly #circuits: Circuits
  /** When the answers are due of those who have waited since the offer's last answer, by offer. */
  readonly #due = new Map<string, number[]>()

  constructor(circuits: Circuits) {
    this.#circuits = circuits
  }

  state(key: string): CircuitState {
    return this.#isSilent(key) ? 'open' : this.#circuits.state(key)
  }

  failing(key: string): boolean {
    return this.#circuits.failing(key)
  }

  /** An attempt begins whose answer is late after `ms`; gives back what `ended` wants. */
  began(offer: string, ms: number): number {
    const due = performance.now() + ms
    const waiting = this.#due.get(offer)
    if (waiting) waiting.push(due)
    else this.#due.set(offer, [due])
    return due
  }

  /** The offer has answered somebody, whoever that was. */
  answered(offer: string): void {
    this.#due.delete(offer)
  }

  /** An attempt has ended without an answer. */
  ended(offer: string, due: number): void {
    const waiting = this.#due.get(offer)
    const at = waiting?.indexOf(due) ?? -1
    if (at < 0) return
    waiting!.splice(at, 1)
    if (waiting!.length === 0) this.#due.delete(offer)
  }

  #isSilent(offer: string): boolean {
    const waiting = this.#due.get(offer)
    return waiting !== undefined && waiting.length >= WAITING && waiting[0]! <= performance.now()
  }
}

const standing = new WeakMap<Circuits, Standing>()

/** The same on every call: what runs is known to the filters of a new configuration too. */
export function standingOf(circuits: Circuits): Standing {
  let known = standing.get(circuits)
  if (!known) {
    known = new Standing(circuits)
    standing.set(circuits, known)
  }
  return known
}
