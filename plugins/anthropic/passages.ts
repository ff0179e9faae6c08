/** Where blocks of text end, and what they cite: clients of the same wire get them as they were. */
import type { Event } from '../../src/plugin.ts'

const passage = (citations: readonly unknown[]): Event => ({ type: 'passage', wire: 'anthropic.messages', citations })

export class Passages {
  /** The block that spoke last, while nothing else has come. */
  #spoke: number | undefined
  #citations: unknown[] = []

  /** Text of a block follows. */
  text(index: number): Event[] {
    const ends = this.#spoke !== undefined && this.#spoke !== index
    this.#spoke = index
    return ends ? [passage([])] : []
  }

  cite(citation: unknown): void {
    this.#citations.push(citation)
  }

  /** A block of text has ended. */
  end(): Event[] {
    const citations = this.#citations
    if (citations.length === 0) return []
    this.#citations = []
    this.#spoke = undefined
    return [passage(citations)]
  }

  /** A block of another kind comes, which ends the text by itself. */
  interrupt(): void {
    this.#spoke = undefined
  }
}
