/** How an answer is cut into frames, and what reads them. */

import type { ChatRequest } from '../core/chat-request.ts'
import type { Exchange } from '../core/exchange.ts'
import { isCountedAhead } from '../core/offer.ts'
import { nativeFormOf, type Target } from '../core/translator.ts'
import type { Decoder, RequestPart } from '../core/wire.ts'
import { isUnmeasured } from '../metering/requests.ts'
import type { Framing } from './framing/framing.ts'
import { BytesFraming, framingFor, mediaType } from './framing/index.ts'
import { cutAtStops } from './stop-sequences.ts'

export interface AnswerReading {
  readonly kind: 'stream' | 'unary' | 'bytes'
  readonly framing: Framing
  readonly decoder: Decoder
}

/** A request that was sent, and the form of its answer for the client. */
export interface AnsweredRequest extends Pick<RequestPart, 'input'> {
  readonly ex: Exchange
  readonly target: Target
  /** The client gets nothing before the end of the answer. */
  readonly isWhole: boolean
}

/** `cancel` ends the provider's work. Throws a GatewayError for an answer of a type that the wire does not have. */
export function readingOf(
  contentType: string | undefined,
  { ex, target, input, isWhole }: AnsweredRequest,
  cancel: () => void,
): AnswerReading {
  const { translator } = target
  const { bytes } = translator
  if (bytes && contentType !== undefined) {
    const type = mediaType(contentType)
    if (bytes.types.some(begin => type.startsWith(begin))) {
      return { kind: 'bytes', framing: new BytesFraming(), decoder: bytes.decoder(contentType, target, input) }
    }
  }
  const { framing, mode } = framingFor(contentType, !isWhole, ex.operation.answerBytes)
  if (ex.endpoint.counts) return { kind: mode, framing, decoder: translator.count!.decoder(target) }
  const native = nativeFormOf(translator, ex.input.native)
  const decoder = native?.decoder?.(mode, target) ?? translator.decoder(mode, target, input)
  if (!ex.request || !('stop' in ex.request)) return { kind: mode, framing, decoder }
  const ends = isCancellable(ex, target) === false ? undefined : cancel
  return { kind: mode, framing, decoder: cutAtStops(decoder, ex.request as ChatRequest, target, ends) }
}

/**
 * Tells whether a call can be cancelled when its client leaves. Usage by characters needs no report. Content of unknown
 * size needs one, so its answer is read to the end.
 */
export const isCancellable = (ex: Exchange, { mapping }: Target): boolean | undefined =>
  isUnmeasured(ex) ? false : (mapping.cancellable ?? (isCountedAhead(ex.target) || undefined))
