/** One choice of a streamed chat answer: its emitted content, and content held until its end. */
import type { ChoiceEvent, ReasoningEvent, SourceEvent } from '../core/event.ts'
import { type PhasedItem, type ReasoningDetail, toDetail } from '../wire/fold.ts'

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
  /** Blocks of reasoning with a format whose text was emitted. */
  #spoken: Set<number> | undefined = undefined
  /** Signatures and ciphertexts of reasoning, for replay. */
  #seals: ReasoningDetail[] | undefined = undefined
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
        if (event.format !== undefined && (event.signature !== undefined || event.data !== undefined)) this.#seal(event)
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

  /** The entry of `reasoning_details` for a piece of text. Clients that add up lists join entries by `index`. */
  pieceOf({ signature: _, data: __, ...piece }: ReasoningEvent): object {
    const index = piece.block ?? 0
    this.#spoken ??= new Set()
    this.#spoken.add(index)
    return { ...toDetail(piece), index }
  }

  /** Holds the signature or ciphertext of a block, without text that was emitted. */
  #seal(event: ReasoningEvent): void {
    const { text: _, ...detail } = toDetail(event)
    const isSpoken = event.text !== '' || this.#spoken?.has(event.block ?? 0) === true
    this.#seals ??= []
    const last = this.#seals.at(-1)
    if (last && event.data === undefined && last.data === undefined && last.block_index === event.block) {
      if (detail.signature !== undefined) last.signature = detail.signature
    } else this.#seals.push(isSpoken || event.data !== undefined ? detail : { ...detail, text: '' })
  }

  #details(): object[] | undefined {
    if (!this.#spoken) return this.#seals
    return this.#seals?.map(detail => ({ ...detail, index: detail.block_index ?? 0 }))
  }

  /** All held content as the members of a delta, without braces; '' when there is none. */
  left(): string {
    return members({
      content_before_tool_calls: this.#hasTextBeforeCalls ? true : undefined,
      message_items: this.#items,
      annotations: this.#annotations(),
      reasoning_details: this.#details(),
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
