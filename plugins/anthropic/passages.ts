/** The text of an answer: where its blocks end, what they cite, and whether it is the answer at all. */
import type { Event } from '../../src/plugin.ts'

const passage = (citations: readonly unknown[]): Event => ({ type: 'passage', wire: 'anthropic.messages', citations })

export class Passages {
  /** The block that spoke last, while nothing else has come. */
  #spoke: number | undefined
  #citations: unknown[] = []
  /** What waits while the answer may yet come by tool: words beside that are none of it. */
  #held: Event[] | 'dropped' | undefined

  /** `byTool`: the answer may come by tool. */
  constructor(byTool: boolean) {
    if (byTool) this.#held = []
  }

  /** Text of a block. */
  say(index: number, text: Event): Event[] {
    const ends = this.#spoke !== undefined && this.#spoke !== index
    this.#spoke = index
    return this.#told(ends ? [passage([]), text] : [text])
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
    return this.#told([passage(citations)])
  }

  /** A block of another kind comes, which ends the text by itself. */
  interrupt(): void {
    this.#spoke = undefined
  }

  /** The answer comes by tool. */
  drop(): void {
    this.#held = 'dropped'
  }

  /** Gives what waited, unless the answer came by tool. */
  release(): Event[] {
    const held = this.#held
    if (held === undefined || held === 'dropped') return []
    this.#held = undefined
    return held
  }

  #told(events: Event[]): Event[] {
    if (this.#held === undefined) return events
    if (this.#held !== 'dropped') this.#held.push(...events)
    return []
  }
}
