/** Answers that are bytes: audio, films. */
import type { Encoder } from '../core/codec.ts'
import type { Event } from '../core/event.ts'

/** Passes bytes on as they come. Nothing can be said in band: what follows would be played. */
export class BytesEncoder implements Encoder {
  contentType: string

  /** `contentType`: until the first bytes name theirs. */
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
