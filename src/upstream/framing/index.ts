/** Chooses a framing by what the provider says that it sends. */

import type { Frame } from '../../core/wire.ts'
import { errors } from '../../lib/error.ts'
import { EventStreamFraming } from './eventstream.ts'
import type { Framing } from './framing.ts'
import { JsonFraming } from './json.ts'
import { SseFraming } from './sse.ts'

/**
 * The framing and decoder mode of an answer, by its content type: providers also answer stream requests with whole
 * JSON bodies and with errors (docs/contributing/edge-cases.md#framing S19, S20). `most`: bytes of such a body.
 */
export function framingFor(
  contentType: string | undefined,
  streamed: boolean,
  most?: number,
): { framing: Framing; mode: 'stream' | 'unary' } {
  const type = contentType && mediaType(contentType)
  if (type === 'text/event-stream') return { framing: new SseFraming(), mode: 'stream' }
  if (type === 'application/vnd.amazon.eventstream') return { framing: new EventStreamFraming(), mode: 'stream' }
  if (type === undefined || type === '' || type === 'text/plain' || type === 'application/octet-stream') {
    return streamed ? { framing: new SseFraming(), mode: 'stream' } : { framing: new JsonFraming(most), mode: 'unary' }
  }
  if (type.endsWith('json')) return { framing: new JsonFraming(most), mode: 'unary' }
  throw errors.invalidAnswer(`its content type is ${JSON.stringify(type.slice(0, 60))}`)
}

/** Without its parameters, in lower case. */
export const mediaType = (contentType: string): string => contentType.replace(/;.*/s, '').trim().toLowerCase()

/** For binary answers: `data` is empty, `bytes` is the chunk. */
export class BytesFraming implements Framing {
  readonly pending = 0

  push(chunk: Buffer): Frame[] {
    return [{ data: '', bytes: chunk }]
  }

  end(): Frame[] {
    return []
  }
}
