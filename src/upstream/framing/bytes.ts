/** Bytes as they come: a frame for each chunk. */
import type { Frame } from '../../core/translator.ts'
import type { Framing } from './framing.ts'

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
