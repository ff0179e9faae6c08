/** One choice of a streamed chat answer: what has been told of it, and what waits for its end. */
import type { Event, SourceEvent } from '../core/event.ts'
import { addDetail, type PhasedItem, type ReasoningDetail } from '../core/fold.ts'

export type ChoiceEvent = Extract<Event, { choice: number }>

/**
 * Lists are told whole, once, at the end of their choice: clients that add deltas up keep the last list that they see,
 * or refuse a second one.
 */
export class ToldChoice {
  /** Characters of text so far. */
  written = 0
  /** It was begun with text of no phase: of more text nothing but its length is to be noted. */
  talks = false
  #begun = false
  #calls = 0
  #spokeBeforeCalls = false
  #items: PhasedItem[] | undefined = undefined
  #sources: SourceEvent[] | undefined = undefined
  /** What its reasoning left for its replay. */
  #details: ReasoningDetail[] | undefined = undefined
  /** Its blocks with no OpenAI form, which go back together or not at all. */
  #native: object[] | undefined = undefined

  /** True for the first time: its role is to be told. */
  begin(): boolean {
    if (this.#begun) return false
    this.#begun = true
    return true
  }

  /** Takes note of an event; false for one of which nothing is told before the end. */
  add(event: ChoiceEvent): boolean {
    switch (event.type) {
      case 'text':
        this.written += event.text.length
        if (this.#items) this.#items.at(-1)!.text += event.text
        else this.talks = this.written > 0
        return true
      case 'tool':
        if (this.#calls === 0) this.#spokeBeforeCalls = this.written > 0
        if (event.index >= this.#calls) this.#calls = event.index + 1
        return true
      case 'phase':
        this.talks = false
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

  /** All that waits, as the members of a delta, without braces; empty when there is nothing. */
  left(): string {
    return members({
      content_before_tool_calls: this.#spokeBeforeCalls ? true : undefined,
      message_items: this.#items,
      annotations: this.#annotations(),
      reasoning_details: this.#details,
      provider_native_blocks: this.#native,
    })
  }

  /** Of what waits, that which is about the text that was shown: for an answer that breaks. */
  leftOfText(): string {
    return members({ annotations: this.#annotations() })
  }

  /** Each is told once. */
  #annotations(): object[] | undefined {
    const sources = this.#sources
    this.#sources = undefined
    return sources?.map(source => annotation(source, this.written))
  }
}

/** Those that are defined. */
const members = (lists: object): string => JSON.stringify(lists).slice(1, -1)

/**
 * A citation in OpenAI's form, which has indexes: a source without a place is one of all the text, of `length`. Only
 * where there is no text it has none.
 */
export function annotation(source: SourceEvent, length: number): object {
  const { url, title = '', start = 0, end = length } = source
  const cited = end === 0 ? { url, title } : { url, title, start_index: start, end_index: end }
  return { type: 'url_citation', url_citation: cited }
}
