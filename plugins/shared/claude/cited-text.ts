/** Citations of an answer's text blocks: those of a block apply to all of its text. */
import { Citations, checkBlocks, type Event, placeIn } from '../../../src/plugin.ts'

/** Counts text and gathers citations; places are those of the text in the gateway's answer. */
export class CitedText {
  readonly #citations = new Citations(0)
  /** Characters of text so far; undefined when unknown. */
  #length: number | undefined = 0
  /** The current block, and the start of its text. */
  #block: number | undefined
  #start = 0
  #waiting: { readonly url: string; readonly title: string | undefined }[] = []

  /** Text of a block. */
  say(block: number, text: string): void {
    this.#enter(block)
    this.go(text)
  }

  /** More text of the current block. */
  go(text: string): void {
    if (this.#length !== undefined) this.#length += text.length
  }

  /** Text outside the blocks was emitted: places after it are unknown. */
  lose(): void {
    this.#length = undefined
  }

  /** A source of a block, whose text may still grow. */
  cite(block: number, url: string, title: unknown): void {
    this.#enter(block)
    checkBlocks(this.#waiting.length + 1)
    this.#waiting.push({ url, title: typeof title === 'string' ? title : undefined })
  }

  /** Ends the current block and emits its citations. */
  end(): Event[] {
    const out: Event[] = []
    const place = placeIn(this.#start, this.#length)
    for (const { url, title } of this.#waiting) this.#citations.add(url, title, place, out)
    this.#waiting = []
    return out
  }

  #enter(block: number): void {
    if (block === this.#block) return
    this.#block = block
    this.#start = this.#length ?? 0
  }
}
