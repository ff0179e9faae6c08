/** Tokens of an answer that a provider may have written since its last report, and that were not seen. */

import { mayReason } from '../core/effort.ts'
import type { Exchange } from '../core/exchange.ts'
import { PARTS_AT_ONCE } from '../core/translator.ts'
import { MOST_OUTPUT } from '../core/usage.ts'
import type { Delivered } from './delivered.ts'

/** Tokens per second, at most: an answer sent in one burst measures far more. */
const MAX_SPEED = 2000

/** Tokens that are usually written in so many milliseconds, at `speed` tokens per second. */
export const usuallyWritten = (milliseconds: number, speed: number): number =>
  (milliseconds / 1000) * Math.min(speed, MAX_SPEED)

/**
 * By the usual speed of the target (see `Thought`), within the limit that was sent. What comes in pieces can hide thoughts
 * alone; what comes whole is written out of sight, too.
 */
export function unseenTokens(ex: Exchange, delivered: Delivered): number {
  const { target, operation, timings, usualSpeed } = ex
  if (!target || !operation.output || timings.sent === 0) return 0
  if (comesInPieces(ex) && !mayReason(ex.chat, target.mapping)) return 0
  const time = delivered.thought.time(performance.now(), timings.sent)
  const tokens = Math.floor(usuallyWritten(time, usualSpeed()) * choicesAtOnce(ex))
  const left = mostTokens(ex) - delivered.seen - delivered.imageTokens(target.price)
  // What is seen of an answer that comes whole was written in the same time.
  return Math.max(0, Math.min(comesInPieces(ex) ? tokens : tokens - delivered.seen, left))
}

/**
 * False for answers that their provider makes whole, though a client may get them as a stream. What is bytes comes in pieces
 * whatever its mapping supports.
 */
export function comesInPieces(ex: Exchange): boolean {
  const { streaming, target, outbound } = ex
  const { translator, mapping } = target!
  const isWhole = outbound.parts !== undefined || outbound.output?.whole || translator.bridged
  return streaming && !isWhole && (mapping.supports.has('streaming') || isMeasured(ex))
}

/** What its bytes come to is measured while they come. */
const isMeasured = ({ target, operation, isCountedAhead }: Exchange): boolean =>
  operation.measure !== undefined && target!.translator.bytes !== undefined && !isCountedAhead

/** The most tokens of all choices together: by the limit that the provider was sent, and by its model's own. */
export function mostTokens({ operation, request, target, outbound }: Exchange): number {
  if (!request || !target || !operation.output) return Number.POSITIVE_INFINITY
  const { choices, limit: asked = Number.POSITIVE_INFINITY } = operation.output(request)
  const sent = outbound.output?.limit ?? outbound.limit?.tokens
  if (sent === Number.POSITIVE_INFINITY) return sent
  const { maxOutput, contextLength } = target.mapping
  const limits = choices * (outbound.output?.limits ?? 1)
  return limits * Math.min(sent ?? asked, maxOutput ?? contextLength ?? MOST_OUTPUT)
}

function choicesAtOnce({ operation, request, outbound }: Exchange): number {
  const { choices } = operation.output!(request!)
  const parts = outbound.parts?.length ?? 1
  return (choices * Math.min(parts, PARTS_AT_ONCE)) / parts
}
