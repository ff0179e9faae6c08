/** A large answer of a local endpoint, in pieces that follow each other as the client takes them. */

import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Services } from '../core/ports.ts'
import { type Reply, written } from '../core/reply.ts'
import { errors } from '../lib/error.ts'
import { HeldValues } from '../limits/held.ts'
import type { MemoryLease } from '../limits/memory.ts'

/** Bytes that wait for a client beyond what counts against its organization. */
const PIECE_BYTES = 64 * 1024

/** Takes memory for all pieces before the first one. Throws a 529 where there is none. */
function* piecesOf(bytes: Buffer, lease: MemoryLease): Generator<readonly Event[]> {
  if (!lease.grow(bytes.length)) throw errors.overloaded()
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    yield [{ type: 'bytes', bytes: bytes.subarray(at, at + PIECE_BYTES) }]
  }
}

/** A reply that is JSON already. Large ones go out in pieces: a hundred unread ones would otherwise fill the process. */
export function jsonReply(bytes: Buffer, { caller: { tenant } }: Exchange, services: Services): Reply {
  if (bytes.length <= PIECE_BYTES) return written(bytes)
  const headers = ['content-length', String(bytes.length)]
  const lease = services.memory.lease(tenant, bytes.length)
  return { status: 200, headers, events: new HeldValues(piecesOf(bytes, lease), () => lease.release()) }
}
