/** How an answer is cut into frames, and what reads them. */
import type { ChatRequest } from '../core/chat-request.ts'
import type { Exchange } from '../core/exchange.ts'
import { type Decoder, nativeFormOf, type RequestPart, type Target } from '../core/translator.ts'
import { isUnmeasured } from '../metering/requests.ts'
import type { Framing } from './framing/framing.ts'
import { BytesFraming, framingFor, mediaType } from './framing/index.ts'
import { cutAtStops } from './stop-sequences.ts'

export interface AnswerReading {
  readonly kind: 'stream' | 'unary' | 'bytes'
  readonly framing: Framing
  readonly decoder: Decoder
}

/** What was sent, and how its answer is given to the client. */
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
  const native = nativeFormOf(translator, ex.native)
  const decoder = native?.decoder?.(mode, target) ?? translator.decoder(mode, target, input)
  if (!ex.request || !('stop' in ex.request)) return { kind: mode, framing, decoder }
  const ends = isCancellable(ex, target) === false ? undefined : cancel
  return { kind: mode, framing, decoder: cutAtStops(decoder, ex.request as ChatRequest, target, ends) }
}

/**
 * What is charged by characters needs no report: its provider is left at once. What content of unknown size costs is
 * known by a report alone, which is waited for.
 */
export const isCancellable = (ex: Exchange, { mapping }: Target): boolean | undefined =>
  isUnmeasured(ex) ? false : (mapping.cancellable ?? (ex.isCountedAhead || undefined))
