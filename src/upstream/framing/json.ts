/** One whole JSON body as one frame. */
import { MAX_ANSWER_BYTES, tooManyBytes } from '../../core/answer-bounds.ts'
import type { Frame } from '../../core/translator.ts'
import { CoalescedChunks } from '../../lib/chunk-coalescer.ts'
import type { Framing } from './framing.ts'

/** For answers with one JSON body: a frame at the end, or none for a blank body. */
export class JsonFraming implements Framing {
  readonly #chunks = new CoalescedChunks()
  readonly #most: number
  #size = 0

  /** `most`: bytes of the body. */
  constructor(most = MAX_ANSWER_BYTES) {
    this.#most = most
  }

  get pending(): number {
    return this.#size
  }

  push(chunk: Buffer): Frame[] {
    this.#size += chunk.length
    if (this.#size > this.#most) throw tooManyBytes(this.#most)
    this.#chunks.add(chunk)
    return []
  }

  taken(): Buffer[] {
    return this.#chunks.take()
  }

  end(): Frame[] {
    // Code that keeps the answer while its client reads it must not keep it twice.
    const whole = this.#chunks.joined()
    this.#size = 0
    return isBlank(whole) ? [] : [new WholeBody(whole)]
  }
}

/** A body whose text is made when it is first read. */
class WholeBody implements Frame {
  readonly bytes: Buffer
  #text: string | undefined

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  get data(): string {
    this.#text ??= this.bytes.toString('utf8').trim()
    return this.#text
  }
}

function isBlank(bytes: Buffer): boolean {
  for (const byte of bytes) if (byte > 0x20) return false
  return true
}
