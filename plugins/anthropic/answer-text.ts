/** The text of an answer: ends of its blocks, citations, and whether the text is the answer. */
import { checkBlocks, type Event } from '../../src/plugin.ts'

const passage = (citations: readonly unknown[]): Event => ({ type: 'passage', wire: 'anthropic.messages', citations })

/** A `passage` event ends a stretch of text and carries its citations. */
export class AnswerText {
  /** The block of the latest text, unless another event followed. */
  #spoke: number | undefined
  #citations: unknown[] = []
  /** Text held back while the answer may still arrive by tool; it is then dropped. */
  #held: Event[] | 'dropped' | undefined

  /** `byTool`: the answer may arrive by tool. */
  constructor(byTool: boolean) {
    if (byTool) this.#held = []
  }

  /** Text of a block. */
  say(index: number, text: Event): Event[] {
    const ends = this.#spoke !== undefined && this.#spoke !== index
    this.#spoke = index
    return this.#emit(ends ? [passage([]), text] : [text])
  }

  cite(citation: unknown): void {
    this.#citations.push(citation)
  }

  /** Ends a block of text. */
  end(): Event[] {
    const citations = this.#citations
    if (citations.length === 0) return []
    this.#citations = []
    this.#spoke = undefined
    return this.#emit([passage(citations)])
  }

  /** A block of another kind begins, which ends the text by itself. */
  interrupt(): void {
    this.#spoke = undefined
  }

  /** The answer arrives by tool: drops the held text. */
  drop(): void {
    this.#held = 'dropped'
  }

  /** The held text, unless the answer arrived by tool. */
  release(): Event[] {
    const held = this.#held
    if (held === undefined || held === 'dropped') return []
    this.#held = undefined
    return held
  }

  #emit(events: Event[]): Event[] {
    if (this.#held === undefined) return events
    if (this.#held !== 'dropped') for (const event of events) this.#hold(this.#held, event)
    return []
  }

  #hold(held: Event[], event: Event): void {
    const last = held.at(-1)
    if (last?.type === 'text' && event.type === 'text') last.text += event.text
    else held.push(event)
    checkBlocks(held.length)
  }
}
