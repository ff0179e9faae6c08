/** The text of an answer, with its citations. */
import type { ChoiceEvent, LogprobsEvent, SourceEvent } from '../../core/event.ts'
import type { Json } from '../../json/json.ts'
import type { OpenItem, Place, Status } from './open-item.ts'

/** The item of one message: its text, refusal and citations. */
export class MessageItem implements OpenItem {
  readonly isPartial = false
  readonly #place: Place
  readonly #phase: string | undefined
  readonly #parts: Json[] = []
  readonly #offset: number
  #length = 0

  constructor(place: Place, phase: string | undefined, offset: number) {
    this.#place = place
    this.#phase = phase
    this.#offset = offset
    place.emit('output_item.added', { output_index: place.index, item: this.#item('in_progress') })
  }

  takes({ type }: ChoiceEvent): boolean {
    return type === 'text' || type === 'refusal' || type === 'source' || type === 'logprobs'
  }

  add(event: ChoiceEvent): void {
    if (event.type === 'source') this.#cite(event)
    if (event.type === 'logprobs') this.#rate(event)
    if (event.type !== 'text' && event.type !== 'refusal') return
    const { text } = event
    const isText = event.type === 'text'
    const part = this.#part(isText)
    const at = { item_id: this.#place.id, output_index: this.#place.index, content_index: this.#parts.length - 1 }
    if (isText) {
      part.text += text
      this.#length += text.length
      this.#place.emit('output_text.delta', { ...at, delta: text, logprobs: [] })
    } else {
      part.refusal += text
      this.#place.emit('refusal.delta', { ...at, delta: text })
    }
  }

  /** Whether the character at `place` of the answer's text is one of its own. */
  covers(place: number): boolean {
    return place >= this.#offset && place < this.#offset + this.#length
  }

  close(status: Status): Json {
    this.#closePart()
    return this.#item(status)
  }

  #part(isText: boolean): Json {
    const last = this.#parts.at(-1)
    if (last && (last.type === 'output_text') === isText) return last
    this.#closePart()
    const part: Json = isText
      ? { type: 'output_text', text: '', annotations: [], logprobs: [] }
      : { type: 'refusal', refusal: '' }
    this.#parts.push(part)
    this.#emitPart('content_part.added', { part })
    return part
  }

  /** A source without a place cites all of the text. Indexes count from the start of the item's text. */
  #cite({ url, title = '', start, end }: SourceEvent): void {
    const part = this.#parts.find(({ type }) => type === 'output_text')
    if (!part) return
    const length = String(part.text).length
    const from = Math.min(Math.max((start ?? this.#offset) - this.#offset, 0), length)
    const to = Math.min(Math.max((end ?? this.#offset + length) - this.#offset, from), length)
    const annotation = { type: 'url_citation', url, title, start_index: from, end_index: to }
    const all = part.annotations as Json[]
    all.push(annotation)
    this.#place.emit('output_text.annotation.added', {
      item_id: this.#place.id,
      output_index: this.#place.index,
      content_index: this.#parts.indexOf(part),
      annotation_index: all.length - 1,
      annotation,
    })
  }

  /** Only the whole part has log probabilities: they arrive after its pieces. */
  #rate({ of, tokens }: LogprobsEvent): void {
    const part = this.#parts.at(-1)
    if (of !== 'content' || part?.type !== 'output_text') return
    const all = part.logprobs as unknown[]
    for (const token of tokens) all.push(token)
  }

  #closePart(): void {
    const part = this.#parts.at(-1)
    if (!part) return
    if (part.type === 'output_text') this.#emitPart('output_text.done', { text: part.text, logprobs: part.logprobs })
    else this.#emitPart('refusal.done', { refusal: part.refusal })
    this.#emitPart('content_part.done', { part })
  }

  #emitPart(type: string, fields: Json): void {
    const { id, index, emit } = this.#place
    emit(type, { item_id: id, output_index: index, content_index: this.#parts.length - 1, ...fields })
  }

  #item(status: string): Json {
    const { id } = this.#place
    const phase = this.#phase && { phase: this.#phase }
    return { id, type: 'message', status, role: 'assistant', content: [...this.#parts], ...phase }
  }
}
