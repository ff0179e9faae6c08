/** Output items while they are being written, and ids of them and of responses. An item's id contains its response's. */
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

/** `answer`: id of an answer. */
export const responseId = (answer: string): string => `resp_${answer}`

/** Id of an output item. */
export const itemId = (prefix: string, answer: string, index: number): string => `${prefix}_${answer}_${index}`

/** Id of an item of the request's own input. */
export const inputItemId = (prefix: string, response: string, index: number): string =>
  `${prefix}_${response.slice('resp_'.length)}_in${index}`

const ITEM = /^[a-z]{2,5}_([2-7a-z]{20})_(?:in)?\d{1,7}$/

/** Id of an item's response; undefined for ids of other origin. */
export function responseOf(item: string): string | undefined {
  const answer = ITEM.exec(item)?.[1]
  return answer === undefined ? undefined : responseId(answer)
}
