/** Reasoning: a readable summary, and encrypted content for its provider. */
import type { ChoiceEvent, ReasoningEvent } from '../../core/event.ts'
import type { Json } from '../../json/json.ts'
import { addDetail, type ReasoningDetail } from '../../wire/fold.ts'
import { carry } from '../carried-reasoning.ts'
import type { OpenItem, Place, Status } from './open-item.ts'

/** Stays open until the next item begins: its signature arrives last. */
export class ReasoningItem implements OpenItem {
  readonly isPartial = false
  readonly #place: Place
  readonly #details: ReasoningDetail[] = []
  #block: number | undefined
  #text = ''
  /** Signature of the call that follows. */
  signature: string | undefined
  readonly native: Json[] = []

  constructor(place: Place) {
    this.#place = place
    place.emit('output_item.added', { output_index: place.index, item: this.#item('in_progress', null) })
  }

  takes(event: ChoiceEvent): boolean {
    return event.type === 'reasoning' && (this.#block === undefined || event.block === this.#block)
  }

  add(event: ReasoningEvent): void {
    this.#block ??= event.block
    addDetail(this.#details, event)
    if (event.text === '') return
    if (this.#text === '') this.#emit('reasoning_summary_part.added', { part: { type: 'summary_text', text: '' } })
    this.#text += event.text
    this.#emit('reasoning_summary_text.delta', { delta: event.text })
  }

  close(status: Status): Json {
    const text = this.#text
    if (text !== '') {
      this.#emit('reasoning_summary_text.done', { text })
      this.#emit('reasoning_summary_part.done', { part: { type: 'summary_text', text } })
    }
    const known = this.#details.map(detail => detail.text ?? '').join('')
    const carried = carry({
      text: known === text ? undefined : text,
      details: this.#details.length > 0 ? this.#details : undefined,
      native: this.native.length > 0 ? this.native : undefined,
      signature: this.signature,
    })
    return this.#item(status, carried)
  }

  #emit(type: string, fields: Json): void {
    const { id, index, emit } = this.#place
    emit(type, { item_id: id, output_index: index, summary_index: 0, ...fields })
  }

  #item(status: string, encrypted: string | null): Json {
    const summary = this.#text === '' ? [] : [{ type: 'summary_text', text: this.#text }]
    return { id: this.#place.id, type: 'reasoning', status, summary, encrypted_content: encrypted }
  }
}
