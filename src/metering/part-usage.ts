/** What one of the requests that stand for an exchange may have cost, where its provider has not reported it. */

import { Cancellation } from '../core/cancel.ts'
import type { Event, UsageReport } from '../core/event.ts'
import { Exchange } from '../core/exchange.ts'
import type { RequestPart } from '../core/wire.ts'
import { errors } from '../lib/error.ts'
import { meters } from './meter.ts'

const NO_BODY = (): never => {
  throw new Error('the body of a part is not read')
}

/**
 * The usage of a part of a request that ends without an answer: by the part's answer, which `events` are all of, the last an
 * error where it failed and is charged; or where these are none, by what its provider may have made since the part was sent,
 * a moment on the monotonic clock. It is what an exchange of its own has whose client leaves.
 */
export function partUsage(ex: Exchange, part: RequestPart, sent: number, events: readonly Event[]): UsageReport {
  const { snapshot, endpoint, headers, query, target, native } = ex
  const signal = new Cancellation()
  const own = new Exchange({ meters, snapshot, endpoint, headers, query, signal, body: NO_BODY })
  own.request = part.input
  own.target = target
  own.native = native
  own.outbound.partOf(ex.outbound, part)
  own.timings.sent = sent
  const isUnseen = events.length === 0
  own.atProvider = isUnseen
  if (isUnseen) signal.abort(errors.aborted())
  const last = events.at(-1)
  if (last?.type === 'error') own.failedWith(events, last.error)
  else own.count(events)
  own.completeUsage(isUnseen || own.isCut)
  const { usage, estimated } = own
  return { type: 'usage', usage, ...(estimated && { estimated }) }
}
