/** What items have in common while they grow. */
import type { Event } from '../../core/event.ts'
import type { Json } from '../../core/json.ts'

export type ChoiceEvent = Extract<Event, { choice: number }>
/** Writes an event of the stream; `type` comes without its `response.`. */
export type Tell = (type: string, fields: Json) => void

/** An item that grows. */
export interface OpenItem {
  /** The item as it is in the end. */
  close(status: Status): Json
  /** True for an event of this item. */
  takes(event: ChoiceEvent): boolean
  add(event: ChoiceEvent): void
  /** Nothing of another item may be told before more of this one has come. */
  readonly isWaiting: boolean
}
export type Status = 'completed' | 'incomplete'

/** Where the open item stands. */
export interface Place {
  readonly id: string
  readonly index: number
  readonly tell: Tell
}
