/** Takes a long base64 value out of JSON text while that arrives, so that neither is held or parsed in one piece. */
import { ByteBuffer } from '../lib/byte-buffer.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const SPACES: readonly number[] = [0x20, 0x09, 0x0a, 0x0d]
/** RFC 8259 section 7, of what encoders write in base64. */
const CUT_ESCAPE = /\\(?:u[\da-f]{0,3})?$/i
const ESCAPE = /\\(?:u([\da-f]{4})|(.))/gi

/** The first value of one field. */
export class InlineField {
  readonly #name: Buffer
  readonly #kept = new ByteBuffer()
  #size = 0
  #place: 'outside' | 'string' | 'value' | 'behind' = 'outside'
  /** The string that is read, as far as it may be the name; undefined once it cannot. */
  #matched: number | undefined = 0
  #escaped = false
  /** Last token outside strings: the name, or the colon behind it. */
  #before: 'name' | 'colon' | undefined
  /** Characters of the value that are not decoded yet. */
  #open = ''

  constructor(name: string) {
    this.#name = Buffer.from(name, 'latin1')
  }

  /** The bytes that this piece of text gives. What is no part of the value is kept. */
  push(chunk: Buffer): Buffer {
    let bytes: Buffer = Buffer.alloc(0)
    let at = 0
    if (this.#place !== 'value' && this.#place !== 'behind') {
      while (at < chunk.length && !this.#isValueBehind(chunk[at++]!));
      this.#keep(chunk.subarray(0, at))
    }
    if (this.#place === 'value') {
      const end = chunk.indexOf(QUOTE, at)
      bytes = this.#decoded(chunk.toString('latin1', at, end < 0 ? chunk.length : end), end >= 0)
      at = end < 0 ? chunk.length : end
      if (end >= 0) this.#place = 'behind'
    }
    if (this.#place === 'behind') this.#keep(chunk.subarray(at))
    return bytes
  }

  /** Bytes of the text that is kept. */
  get size(): number {
    return this.#size
  }

  /** The text that came since the last call, as UTF-8, with an empty string in the place of the value. */
  takeKept(): Buffer {
    return this.#kept.take()
  }

  #keep(bytes: Buffer): void {
    this.#size += bytes.length
    this.#kept.add(bytes)
  }

  #isValueBehind(byte: number): boolean {
    if (this.#place === 'string') this.#inString(byte)
    else if (byte === QUOTE) {
      this.#place = this.#before === 'colon' ? 'value' : 'string'
      this.#matched = 0
    } else if (!SPACES.includes(byte)) this.#before = byte === COLON && this.#before === 'name' ? 'colon' : undefined
    return this.#place === 'value'
  }

  #inString(byte: number): void {
    if (this.#escaped) this.#escaped = false
    else if (byte === BACKSLASH) {
      this.#escaped = true
      this.#matched = undefined
    } else if (byte === QUOTE) {
      this.#place = 'outside'
      this.#before = this.#matched === this.#name.length ? 'name' : undefined
    } else if (this.#matched !== undefined)
      this.#matched = this.#name[this.#matched] === byte ? this.#matched + 1 : undefined
  }

  #decoded(piece: string, isLast: boolean): Buffer {
    let text = this.#open + piece
    let cut = ''
    if (text.includes('\\')) {
      cut = isLast ? '' : (CUT_ESCAPE.exec(text)?.[0] ?? '')
      text = text.slice(0, text.length - cut.length).replace(ESCAPE, (_, code?: string, letter?: string) => {
        if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16))
        return letter === '/' ? letter : ''
      })
    }
    const whole = isLast ? text.length : text.length - (text.length % 4)
    this.#open = text.slice(whole) + cut
    return Buffer.from(text.slice(0, whole), 'base64')
  }
}
