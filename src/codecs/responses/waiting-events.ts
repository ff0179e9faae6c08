/** Events that wait while another item is open. */
import type { ChoiceEvent, ToolEvent } from '../../core/event.ts'
import { joins, waitable } from '../waiting-pieces.ts'

/** First in, first out. Joins the pieces of a call at its start, and adjacent pieces of a text or a thought. */
export class WaitingEvents {
  #events: ChoiceEvent[] = []
  #next = 0
  /** By index. */
  readonly #calls = new Map<number, ToolEvent>()

  add(event: ChoiceEvent): void {
    if (event.type === 'tool') {
      const call = this.#calls.get(event.index)
      if (call) call.args = (call.args ?? '') + (event.args ?? '')
      else {
        const own = Object.assign({}, event)
        this.#calls.set(event.index, own)
        this.#events.push(own)
      }
      return
    }
    const last = this.#next < this.#events.length ? this.#events.at(-1) : undefined
    if (!joins(last, event)) this.#events.push(waitable(event))
  }

  shift(): ChoiceEvent | undefined {
    const event = this.#events[this.#next++]
    if (event?.type === 'tool') this.#calls.delete(event.index)
    if (this.#next >= this.#events.length) {
      this.#events = []
      this.#next = 0
    }
    return event
  }
}
