/** Server-sent events: chunks in, one frame per event out. */
import { StringDecoder } from 'node:string_decoder'
import { createParser, type EventSourceParser } from 'eventsource-parser'
import type { Frame } from '../../core/wire.ts'
import { tooManyBytes } from '../../json/answer-bounds.ts'
import { jsonIn } from '../../json/json.ts'
import type { Framing } from './framing.ts'

const MAX_EVENT_CHARACTERS = 32 * 1024 * 1024
const MAX_STRAY_CHARACTERS = 64 * 1024

const isJson = (text: string): boolean => /^\s*[[{]/.test(text) && jsonIn(text) !== undefined

/** For event streams (WHATWG HTML); events without data are skipped, and one has at most 32 Mi characters. */
export class SseFraming implements Framing {
  pending = 0
  #frames: Frame[] = []
  #first = true
  #overflow = false
  /** The text so far ends in a carriage return, which may be half of the end of a line. */
  #isHalf = false
  /** Lines outside of events: some providers write errors there, as bare JSON (docs/contributing/wire-sources.md#gemini). */
  #stray = ''
  readonly #text = new StringDecoder('utf8')
  readonly #parser: EventSourceParser

  constructor() {
    this.#parser = createParser({
      maxBufferSize: MAX_EVENT_CHARACTERS,
      onEvent: event => {
        if (event.data !== '') this.#frames.push({ data: event.data, name: event.event })
      },
      onError: error => {
        if (error.type === 'max-buffer-size-exceeded') {
          this.#overflow = true
          return
        }
        if (error.type === 'unknown-field' && this.#stray.length < MAX_STRAY_CHARACTERS) {
          this.#stray += `${error.line}\n`
        }
      },
    })
  }

  push(chunk: Buffer): Frame[] {
    let text = this.#text.write(chunk)
    if (this.#first && text !== '') {
      this.#first = false
      if (text.charCodeAt(0) === 0xfeff) text = text.slice(1)
    }
    return this.#feed(text)
  }

  /** Providers rely on their last event being read even when its blank line is missing. */
  end(): Frame[] {
    const frames = this.#feed(`${this.#text.end()}\n\n`)
    if (isJson(this.#stray)) frames.push({ data: this.#stray })
    return frames
  }

  #feed(given: string): Frame[] {
    const text = this.#withNewlines(given)
    if (text !== '') this.#parse(text)
    if (this.#overflow) throw tooManyBytes()
    const frames = this.#frames
    this.#frames = []
    // The text behind the last event is not whole yet.
    this.pending = frames.length > 0 ? text.length - text.lastIndexOf('\n\n') : this.pending + text.length
    return frames
  }

  /** The parser makes an error of each line that it does not know, whose stack takes 4 µs. */
  #parse(text: string): void {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    try {
      this.#parser.feed(text)
    } finally {
      Error.stackTraceLimit = stackTraceLimit
    }
  }

  /** Each line ends in a newline: the parser looks for a carriage return anew behind each line, up to the end of the text. */
  #withNewlines(given: string): string {
    let text = this.#isHalf ? `\r${given}` : given
    this.#isHalf = text.endsWith('\r')
    if (this.#isHalf) text = text.slice(0, -1)
    return text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text
  }
}
