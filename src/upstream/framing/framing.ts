/** How a byte stream is cut into frames. Sync; one per answer. */
import type { Frame } from '../../core/translator.ts'

/** Cuts the chunks of one answer into frames. `push` and `end` throw a 502 where a frame is too large. */
export interface Framing {
  /** About how many bytes are kept for a frame that is not whole yet. */
  readonly pending: number
  /** Lines so far that belong to no event and are no comments, where frames consist of lines. */
  readonly unknownLines?: number
  /** Lines so far, of chunks that have many. */
  readonly lines?: number
  push(chunk: Buffer): Frame[]
  /** The chunks that are kept for a frame which is all of the answer: they are kept no more. Absent where there are more. */
  taken?(): Buffer[]
  /** What is left at the end of the bytes. */
  end(): Frame[]
}
