/** How a byte stream is cut into frames. Sync; one per answer. */
import type { Frame } from '../../core/wire.ts'

/** Cuts the chunks of one answer into frames. `push` and `end` throw a 502 where a frame is too large. */
export interface Framing {
  /** About how many bytes are kept for a frame that is not whole yet. */
  readonly pending: number
  push(chunk: Buffer): Frame[]
  /** Returns the frames left at the end of the bytes. */
  end(): Frame[]
}
