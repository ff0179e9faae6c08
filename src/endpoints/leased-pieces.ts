/** A large answer of a local endpoint, in pieces that follow each other as the client takes them. */
import { written } from '../core/endpoint.ts'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Reply } from '../core/filter.ts'
import type { Services } from '../core/ports.ts'
import { errors } from '../lib/error.ts'
import type { MemoryBudget, MemoryLease } from '../limits/memory.ts'

type Batch = IteratorResult<readonly Event[]>

/** Bytes that wait for a client beyond what counts against its organization. */
const PIECE_BYTES = 64 * 1024

/** Takes memory when it is first read; that throws a 529 when there is none. Releases it with the last piece. */
class LeasedPieces implements AsyncIterable<readonly Event[]>, AsyncIterator<readonly Event[]> {
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
    this.#bytes = bytes.subarray(PIECE_BYTES)
    return { done: false, value: [{ type: 'bytes', bytes: bytes.subarray(0, PIECE_BYTES) }] }
  }

  async return(): Promise<Batch> {
    this.#bytes = undefined
    this.#lease?.release()
    return { done: true, value: undefined }
  }
}

/** A reply that is JSON already. Large ones go out in pieces: a hundred unread ones would otherwise fill the process. */
export function jsonReply(bytes: Buffer, { tenant }: Exchange, services: Services): Reply {
  if (bytes.length <= PIECE_BYTES) return written(bytes)
  const headers = ['content-length', String(bytes.length)]
  return { status: 200, headers, events: new LeasedPieces(bytes, services.memory, tenant) }
}
