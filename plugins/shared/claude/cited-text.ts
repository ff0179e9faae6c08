/** What the text blocks of an answer cite: the citations of a block are about all of its text. */
import { Citations, type Event, placeIn } from '../../../src/plugin.ts'

export class CitedText {
  readonly #citations = new Citations(0)
  /** Characters of text so far; undefined when that is not known. */
  #length: number | undefined = 0
  /** The block that speaks, and where its text begins. */
  #block: number | undefined
  #start = 0
  #waiting: { readonly url: string; readonly title: string | undefined }[] = []

  /** Text of a block. */
  say(block: number, text: string): void {
    this.#enter(block)
    this.go(text)
  }

  /** More text of the block that spoke last. */
  go(text: string): void {
    if (this.#length !== undefined) this.#length += text.length
  }

  /** Text is told that is not the blocks': places in it are not known from here on. */
  lose(): void {
    this.#length = undefined
  }

  /** A source of a block, whose text may still grow. */
  cite(block: number, url: string, title: unknown): void {
    this.#enter(block)
    this.#waiting.push({ url, title: typeof title === 'string' ? title : undefined })
  }

  /** The block that spoke last has ended: tells what it cites. */
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
