/** Answers that are bytes: audio, videos. */
import type { Encoder } from '../core/codec.ts'
import type { Event } from '../core/event.ts'

/** Passes bytes on unchanged. An error cannot be sent in band: it would be played. */
export class BytesEncoder implements Encoder {
  contentType: string

  /** `contentType`: the default, until the first bytes determine it. */
  constructor(contentType: string) {
    this.contentType = contentType
  }

  write(batch: readonly Event[]): readonly Buffer[] | undefined {
    const pieces: Buffer[] = []
    for (const event of batch) {
      if (event.type !== 'bytes') continue
      if (event.contentType !== undefined) this.contentType = event.contentType
      pieces.push(event.bytes)
    }
    return pieces.length > 0 ? pieces : undefined
  }

  end(): string {
    return ''
  }

  fail(): undefined {}
}
