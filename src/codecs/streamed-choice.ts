/** One choice of a streamed chat answer: its emitted content, and content held until its end. */
import type { ChoiceEvent, SourceEvent } from '../core/event.ts'
import { addDetail, type PhasedItem, type ReasoningDetail } from '../core/fold.ts'

/**
 * Lists are emitted whole, once, at the end of their choice: clients that add up deltas keep the last list, or reject a
 * second one.
 */
export class StreamedChoice {
  /** Characters of text so far. */
  characters = 0
  /** Began with text without a phase: further text only adds to the length. */
  isPlainText = false
  #begun = false
  #calls = 0
  #hasTextBeforeCalls = false
  #items: PhasedItem[] | undefined = undefined
  #sources: SourceEvent[] | undefined = undefined
  /** Reasoning details for replay. */
  #details: ReasoningDetail[] | undefined = undefined
  /** Blocks without an OpenAI form, which can only be replayed together. */
  #native: object[] | undefined = undefined

  /** True the first time: the role must be emitted. */
  begin(): boolean {
    if (this.#begun) return false
    this.#begun = true
    return true
  }

  /** Records an event; false when all of it is held until the end. */
  add(event: ChoiceEvent): boolean {
    switch (event.type) {
      case 'text':
        this.characters += event.text.length
        if (this.#items) this.#items.at(-1)!.text += event.text
        else this.isPlainText = this.characters > 0
        return true
      case 'tool':
        if (this.#calls === 0) this.#hasTextBeforeCalls = this.characters > 0
        if (event.index >= this.#calls) this.#calls = event.index + 1
        return true
      case 'phase':
        this.isPlainText = false
        this.#items ??= []
        this.#items.push({ text: '', phase: event.phase, preceding_tool_calls: this.#calls })
        return true
      case 'reasoning':
        if (event.format === undefined) return true
        this.#details ??= []
        addDetail(this.#details, event)
        return event.text !== ''
      case 'source':
        this.#sources ??= []
        this.#sources.push(event)
        return false
      case 'native':
        this.#native ??= []
        this.#native.push({ ...event.block, provider: event.provider })
        return false
      default:
        return true
    }
  }

  /** All held content as the members of a delta, without braces; '' when there is none. */
  left(): string {
    return members({
      content_before_tool_calls: this.#hasTextBeforeCalls ? true : undefined,
      message_items: this.#items,
      annotations: this.#annotations(),
      reasoning_details: this.#details,
      provider_native_blocks: this.#native,
    })
  }

  /** Held content about the emitted text: for an answer that fails. */
  leftOfText(): string {
    return members({ annotations: this.#annotations() })
  }

  /** Each annotation is emitted once. */
  #annotations(): object[] | undefined {
    const sources = this.#sources
    this.#sources = undefined
    return sources?.map(source => annotation(source, this.characters))
  }
}

/** Without undefined members. */
const members = (lists: object): string => JSON.stringify(lists).slice(1, -1)

/**
 * A citation in OpenAI's form, which requires indexes: a source without a place spans the whole text, of `length`.
 * Without text it has none.
 */
export function annotation(source: SourceEvent, length: number): object {
  const { url, title = '', start = 0, end = length } = source
  const cited = end === 0 ? { url, title } : { url, title, start_index: start, end_index: end }
  return { type: 'url_citation', url_citation: cited }
}
