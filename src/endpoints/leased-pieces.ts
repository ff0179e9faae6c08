/** A large answer of a local endpoint, in pieces that follow each other as the client takes them. */
import { errors } from '../core/error.ts'
import type { Event } from '../core/event.ts'
import type { MemoryBudget, MemoryLease } from '../core/memory-budget.ts'

type Batch = IteratorResult<readonly Event[]>

/** Bytes that wait for a client beyond what counts against its organization. */
export const PIECE = 64 * 1024

/** Takes memory when it is first read; that throws a 529 when there is none. Releases it with the last piece. */
export class LeasedPieces implements AsyncIterable<readonly Event[]>, AsyncIterator<readonly Event[]> {
  readonly #memory: MemoryBudget
  readonly #tenant: string
  #bytes: Buffer | undefined
  #lease: MemoryLease | undefined

  constructor(bytes: Buffer, memory: MemoryBudget, tenant: string) {
    this.#bytes = bytes
    this.#memory = memory
    this.#tenant = tenant
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<Batch> {
    const bytes = this.#bytes
    if (!bytes?.length) return this.return()
    if (!this.#lease) {
      const lease = this.#memory.lease(this.#tenant, bytes.length)
      if (!lease.grow(bytes.length)) throw errors.overloaded()
      this.#lease = lease
    }
    this.#bytes = bytes.subarray(PIECE)
    return { done: false, value: [{ type: 'bytes', bytes: bytes.subarray(0, PIECE) }] }
  }

  async return(): Promise<Batch> {
    this.#bytes = undefined
    this.#lease?.release()
    return { done: true, value: undefined }
  }
}
