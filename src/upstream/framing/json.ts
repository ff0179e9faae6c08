/** One whole JSON body as one frame. */

import type { Frame } from '../../core/wire.ts'
import { MAX_ANSWER_BYTES, tooManyBytes } from '../../json/answer-bounds.ts'
import { ByteBuffer } from '../../lib/byte-buffer.ts'
import { utf8Text } from '../../lib/utf8.ts'
import type { Framing } from './framing.ts'

/** For answers with one JSON body: a frame at the end, or none for a blank body. */
export class JsonFraming implements Framing {
  readonly #body = new ByteBuffer()
  readonly #most: number

  /** `most`: bytes of the body. */
  constructor(most = MAX_ANSWER_BYTES) {
    this.#most = most
  }

  get pending(): number {
    return this.#body.size
  }

  push(chunk: Buffer): Frame[] {
    if (this.#body.size + chunk.length > this.#most) throw tooManyBytes(this.#most)
    this.#body.add(chunk)
    return []
  }

  end(): Frame[] {
    // Code that keeps the answer while its client reads it must not keep it twice.
    const whole = this.#body.take()
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
    this.#text ??= utf8Text(this.bytes).trim()
    return this.#text
  }
}

function isBlank(bytes: Buffer): boolean {
  for (const byte of bytes) if (byte > 0x20) return false
  return true
}
