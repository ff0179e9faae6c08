/** Removes a leading `<think>` block from an answer's text (C23), from providers that do not parse it. */
import type { Event } from '../../src/plugin.ts'

const OPEN = '<think>'
const CLOSE = '</think>'
/** White space allowed before the tag; more is an answer. */
const MAX_LEAD_CHARACTERS = 64

/** Reads text in pieces that may split tags; emits `reasoning`, then `text`. */
export class ThinkTags {
  readonly #choice: number
  #held = ''
  #state: 'lead' | 'inside' | 'gap' | 'text' = 'lead'

  constructor(choice: number) {
    this.#choice = choice
  }

  write(piece: string, out: Event[]): void {
    let text = this.#held === '' ? piece : this.#held + piece
    this.#held = ''
    if (this.#state === 'lead') {
      const start = text.trimStart()
      if (start.length < OPEN.length && OPEN.startsWith(start) && text.length < MAX_LEAD_CHARACTERS) {
        this.#held = text
        return
      }
      this.#state = start.startsWith(OPEN) ? 'inside' : 'text'
      if (this.#state === 'inside') text = start.slice(OPEN.length)
    }
    if (this.#state === 'inside') {
      const end = text.indexOf(CLOSE)
      if (end < 0) {
        const cut = beforePartialTag(text)
        this.#held = text.slice(cut)
        this.#emit('reasoning', text.slice(0, cut), out)
        return
      }
      this.#emit('reasoning', text.slice(0, end), out)
      text = text.slice(end + CLOSE.length)
      this.#state = 'gap'
    }
    if (this.#state === 'gap') {
      text = text.trimStart()
      if (text !== '') this.#state = 'text'
    }
    this.#emit('text', text, out)
  }

  /** Emits held text that turned out not to be a tag. */
  flush(out: Event[]): void {
    this.#emit(this.#state === 'inside' ? 'reasoning' : 'text', this.#held, out)
    this.#held = ''
    if (this.#state === 'lead') this.#state = 'text'
  }

  /** True once no tag can follow. */
  get over(): boolean {
    return this.#state === 'text'
  }

  #emit(type: 'text' | 'reasoning', text: string, out: Event[]): void {
    if (text !== '') out.push({ type, choice: this.#choice, text })
  }
}

/** Start of a possibly incomplete closing tag at the end. */
function beforePartialTag(text: string): number {
  const at = text.lastIndexOf('<')
  return at >= 0 && CLOSE.startsWith(text.slice(at)) ? at : text.length
}
