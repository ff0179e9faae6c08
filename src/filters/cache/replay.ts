/** A cached answer as its client gets it: within memory, and a piece of a stream at a time. */

import type { Event } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { CachedReply } from '../../core/ports.ts'
import type { Reply } from '../../core/reply.ts'
import { weigh } from '../../json/size.ts'
import { errors } from '../../lib/error.ts'
import { HeldValues } from '../../limits/held.ts'
import type { MemoryBudget } from '../../limits/memory.ts'

const BYTES_OF_CHARACTER = 2
/** Characters of a piece, and at least of a batch: its client takes one before the next is written. */
const BATCH_CHARACTERS = 32 * 1024

/** Throws 529 where there is no memory for the entry: the cache may drop it long before its client has taken it. */
export function replay(ex: Exchange, hit: CachedReply, memory: MemoryBudget): Reply {
  const { events } = hit
  const lease = memory.lease(ex.caller.tenant)
  if (!lease.grow(BYTES_OF_CHARACTER * weigh(events))) throw errors.overloaded()
  ex.answer.cached = hit
  ex.requested.model = hit.requestedModel
  ex.requested.provider = hit.requestedProvider
  const batches = ex.streaming ? batchesOf(events) : [events]
  return { status: 200, headers: ['x-gateway-cache', 'HIT'], events: new HeldValues(batches, () => lease.release()) }
}

/** Long texts come in pieces, as from a provider. */
function* batchesOf(events: readonly Event[]): Generator<readonly Event[]> {
  let batch: Event[] = []
  let length = 0
  for (const event of events) {
    for (const piece of piecesOf(event)) {
      batch.push(piece)
      length += weigh(piece)
      if (length < BATCH_CHARACTERS) continue
      yield batch
      batch = []
      length = 0
    }
  }
  if (batch.length > 0) yield batch
}

function* piecesOf(event: Event): Generator<Event> {
  if (event.type !== 'text' || event.text.length <= BATCH_CHARACTERS) {
    yield event
    return
  }
  const { text } = event
  for (let at = 0; at < text.length; ) {
    const end = at + BATCH_CHARACTERS - (isSplit(text, at + BATCH_CHARACTERS) ? 1 : 0)
    yield { ...event, text: text.slice(at, end) }
    at = end
  }
}

/** Whether a character of two units would be cut. */
const isSplit = (text: string, at: number): boolean => /[\ud800-\udbff]/.test(text.charAt(at - 1))
