/** One whole JSON body as one frame. */
import { errors } from '../../core/error.ts'
import type { Frame } from '../../core/translator.ts'
import type { Framing } from './framing.ts'

const MAX_BODY_BYTES = 32 * 1024 * 1024

export class JsonFraming implements Framing {
  #chunks: Buffer[] = []
  #size = 0

  push(chunk: Buffer): Frame[] {
    this.#size += chunk.length
    if (this.#size > MAX_BODY_BYTES) throw errors.invalidAnswer('the body is larger than 32 MiB')
    this.#chunks.push(chunk)
    return []
  }

  end(): Frame[] {
    const whole = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)
    // Whoever holds on to the answer while its client takes it must not keep it twice.
    this.#chunks = []
    return isBlank(whole) ? [] : [new WholeBody(whole)]
  }
}

/** A body whose text is made when somebody asks for it. */
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
