/** How a byte stream is cut into frames. Sync; one per answer. */
import type { Frame } from '../../core/translator.ts'

export interface Framing {
  push(chunk: Buffer): Frame[]
  /** What is left at the end of the bytes. */
  end(): Frame[]
}
