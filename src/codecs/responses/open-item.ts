/** An output item while it is being written. */
import type { ChoiceEvent } from '../../core/event.ts'
import type { Json } from '../../json/json.ts'

/** Writes an event of the stream, at once; `type` is without its `response.`. */
export type Emit = (type: string, fields: Json) => void

/** An item that is not finished. */
export interface OpenItem {
  /** The finished item. */
  close(status: Status): Json
  /** True for an event of this item. */
  takes(event: ChoiceEvent): boolean
  add(event: ChoiceEvent): void
  /** Its end is still to come: no other item may begin. */
  readonly isPartial: boolean
}
/** `incomplete`: the answer ended before the item did. */
export type Status = 'completed' | 'incomplete'

/** Position of the open item. */
export interface Place {
  readonly id: string
  readonly index: number
  readonly emit: Emit
}
