/** Cuts the chunks of an answer into frames, and counts how much work they make. */
import { errors } from '../core/error.ts'
import type { Frame } from '../core/translator.ts'
import type { Framing } from './framing/framing.ts'

/** Of a stream, what is cut into frames at a time: a slice of the smallest ones takes about 5 ms. */
const SLICE = 8 * 1024
const NEWLINE = 10
/** Frames and unknown lines after which a stream waits for its turn: providers send some dozens in a slice. */
const MANY = 256
/** Lines that take about as long as one of these, even when they are blank. */
const LINES = 16
/** Frames and unknown lines in a row that hold no event: more than a model writes tokens. Comments do not count. */
const MAX_SILENT = 200_000

export class FrameCutter {
  readonly #framing: Framing
  /** Of a chunk, what is cut at a time. */
  readonly #slice: number
  /** Frames and unknown lines, and others for their part, of what was taken last, or since it waited for a turn. */
  #work = 0
  /** Frames and unknown lines since the last event. */
  #silent = 0
  #unknownLines = 0
  #lines = 0

  /** `isStream`: slices are cut one after another. */
  constructor(framing: Framing, isStream: boolean) {
    this.#framing = framing
    this.#slice = isStream ? SLICE : Number.POSITIVE_INFINITY
  }

  /** What is kept of a frame that is not whole; see `Framing`. */
  get pending(): number {
    return this.#framing.pending
  }

  /** So much was cut since the last turn that what follows waits for another one. */
  get isMuch(): boolean {
    return this.#work > MANY
  }

  /** A turn of the loop has begun. */
  restart(): void {
    this.#work = 0
  }

  /** Where the slice of a chunk ends: behind a line where there is one, since half a line is copied when the rest comes. */
  endOfSlice(chunk: Buffer | undefined, from: number): number {
    if (!chunk) return 0
    const end = from + this.#slice
    if (end >= chunk.length) return chunk.length
    const line = chunk.lastIndexOf(NEWLINE, end - 1) + 1
    return line > from ? line : end
  }

  /** See `Framing`. */
  taken(): readonly Buffer[] {
    return this.#framing.taken?.() ?? []
  }

  /** `chunk` is undefined at the end of the bytes. */
  framesOf(chunk: Buffer | undefined): Frame[] {
    const frames = chunk ? this.#framing.push(chunk) : this.#framing.end()
    const { unknownLines = 0, lines = 0 } = this.#framing
    const cut = frames.length + unknownLines - this.#unknownLines
    this.#silent += cut
    this.#work += cut + Math.floor((lines - this.#lines) / LINES)
    this.#unknownLines = unknownLines
    this.#lines = lines
    return frames
  }

  /** What was cut has given events, or none. Throws the failure of an answer that goes on and on without any. */
  gave(events: number): void {
    if (events > 0) this.#silent = 0
    else if (this.#silent > MAX_SILENT)
      throw errors.invalidAnswer(`${MAX_SILENT} of its events and lines in a row say nothing`)
  }
}
