/** What has come of an answer since its last report. */
import type { Event } from '../core/event.ts'
import { tokensOfImage } from '../core/media.ts'
import type { Price } from '../core/money.ts'
import { estimateTokens, textSize, type Usage } from '../core/usage.ts'
import { Thought } from './thought.ts'

/** A report names all that came before it; the first of them, before any content, names nothing. */
export class Delivered {
  readonly thought = new Thought()
  /** Since the last report. */
  images = 0
  /** But those of reasoning. */
  #bytes = 0
  /** Completion tokens of the last report. */
  #reported = 0

  /** A piece of content. `now` and `sent`, when the request was, are milliseconds on the monotonic clock. */
  add(event: Event, now: number, sent: number): void {
    switch (event.type) {
      case 'reasoning':
        this.thought.bytes += textSize(event.text)
        this.thought.goesOn()
        return
      case 'native':
        this.thought.goesOn()
        return
      case 'text':
      case 'refusal':
        if (event.text.length === 0) return
        this.#bytes += textSize(event.text)
        break
      case 'tool':
        this.#bytes += textSize(event.args ?? '') + textSize(event.name ?? '')
        break
      case 'image':
        this.images++
        break
    }
    this.thought.ends(now, sent)
  }

  /** Bytes that came, and are in no event. */
  lost(bytes: number): void {
    this.#bytes += bytes
  }

  /** All of it was reported, and thought. */
  reported({ completion = 0, internal_reasoning: thought = 0 }: Usage, now: number): void {
    this.#reported = completion
    this.#bytes = 0
    this.images = 0
    this.thought.reported(thought, now)
  }

  /** The answer begins afresh: reports before count for nothing. */
  restart(): void {
    this.#reported = 0
  }

  get isEmpty(): boolean {
    return this.#bytes === 0 && this.thought.bytes === 0 && this.images === 0
  }

  /** Tokens that are not thoughts, or were reported; without images. */
  get seen(): number {
    return this.#reported + estimateTokens(this.#bytes)
  }

  /**
   * Tokens without images, `unseen` of which may have been thought. A model that shows its reasoning has thought that, or
   * what it was silent for: the larger of both.
   */
  written(unseen: number): number {
    return Math.max(this.#reported + estimateTokens(this.#bytes + this.thought.bytes), this.seen + unseen)
  }

  imageTokens(price: Price | undefined): number {
    return this.images * tokensOfImage(price)
  }
}
