/** What items have in common while they grow. */
import type { Event } from '../../core/event.ts'
import type { Json } from '../../core/json.ts'

export type ChoiceEvent = Extract<Event, { choice: number }>
/** Writes an event of the stream, at once; `type` is without its `response.`. */
export type Emit = (type: string, fields: Json) => void

/** An item that grows. */
export interface OpenItem {
  /** The item as it is in the end. */
  close(status: Status): Json
  /** True for an event of this item. */
  takes(event: ChoiceEvent): boolean
  add(event: ChoiceEvent): void
  /** More of it is to come, so that no other item may begin. */
  readonly isPartial: boolean
}
export type Status = 'completed' | 'incomplete'

/** Where the open item stands. */
export interface Place {
  readonly id: string
  readonly index: number
  readonly emit: Emit
}
