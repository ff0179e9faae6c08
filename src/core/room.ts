/** The bytes that requests may make the process keep, all together: bodies, and images that are fetched for them. */
import type { Load, Room } from './ports.ts'
import { Threshold } from './threshold.ts'

/** What counts as large, once memory is scarce. */
const LARGE = 1024 * 1024
/** Shares of the heap's limit (reliability section C, admission). */
const SCARCE = { from: 0.85, to: 0.8 }

export class ByteRoom implements Room {
  readonly #limit: number
  readonly #load: Pick<Load, 'memory'>
  readonly #scarce = new Threshold(SCARCE.from, SCARCE.to)
  #taken = 0

  /** While `load` tells that memory is scarce, nothing large is taken. */
  constructor(limit: number, load: Pick<Load, 'memory'>) {
    this.#limit = limit
    this.#load = load
  }

  get taken(): number {
    return this.#taken
  }

  take(bytes: number): boolean {
    if (this.#taken + bytes > this.#limit) return false
    if (bytes > LARGE && this.#scarce.isOver(this.#load.memory())) return false
    this.#taken += bytes
    return true
  }

  give(bytes: number): void {
    this.#taken -= bytes
  }
}
