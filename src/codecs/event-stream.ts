/** Server-sent events. Typed streams name each event and have no `[DONE]` (docs/contract.md#media-answers). */
import type { Codec } from '../core/codec.ts'
import { errorBody, type GatewayError } from '../lib/error.ts'

/** The content type of server-sent events. */
export const EVENT_STREAM = 'text/event-stream; charset=utf-8'

/** An SSE comment while no event is sent. */
export const typedHeartbeat: NonNullable<Codec['heartbeat']> = { contentType: EVENT_STREAM, text: ':\n\n' }

/** An SSE event whose data is a JSON object with its type and `fields`. */
export const typedEvent = (type: string, fields: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`

/** Writes an event from members that are already JSON text. */
export const typedEventText = (type: string, members: string): string =>
  `event: ${type}\ndata: {"type":"${type}",${members}}\n\n`

/** Last event of a failed stream: official clients raise an error for it. */
export const failureEvent = (error: GatewayError): string => typedEvent('error', errorBody(error))
