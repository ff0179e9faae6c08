/** Events of sessions: reading them within bounds, and the errors that clients get. */
import { isObject, type Json, jsonIn, listIn } from '../json/json.ts'
import { CALL_BOUNDS, Shape } from '../json/shape.ts'
import { shortId } from '../lib/id.ts'
import { scheduler } from '../limits/scheduler.ts'
import type { Mask } from '../secrets/mask.ts'

/** Why an event of a client is not passed on. */
export class EventError extends Error {
  readonly code: string
  readonly param: string | null

  constructor(code: string, message: string, param: string | null = null) {
    super(message)
    this.code = code
    this.param = param
  }
}

/** An event of either side (OpenAI's Realtime API: client events and server events). */
export interface RealtimeEvent extends Json {
  readonly type: string
}

/** A message that is an event; `text` is masked. */
export interface ReadEvent {
  readonly event: RealtimeEvent
  readonly text: string
}

/** Characters from which reading a message is scheduled. */
const SCHEDULED_CHARACTERS = 64 * 1024

/** Undefined for what is no event, or is more than one may hold. `mask`: of the side's credential. */
export function readEvent(
  message: string,
  tenant: string,
  mask?: Mask,
): ReadEvent | undefined | Promise<ReadEvent | undefined> {
  return message.length < SCHEDULED_CHARACTERS ? read(message, mask) : scheduler.run(tenant, () => read(message, mask))
}

function read(message: string, mask: Mask | undefined): ReadEvent | undefined {
  const text = mask?.answer(message) ?? message
  const shape = new Shape(CALL_BOUNDS)
  shape.add(text)
  const event = shape.excess === undefined ? eventIn(jsonIn(text)) : undefined
  return event && { event, text }
}

const eventIn = (value: unknown): RealtimeEvent | undefined =>
  isObject(value) && typeof value.type === 'string' ? (value as RealtimeEvent) : undefined

const MAX_ID_CHARACTERS = 128
/** The id that a client gave its event. */
export const idOf = ({ event_id: id }: Readonly<Json>): string | null =>
  typeof id === 'string' && id.length <= MAX_ID_CHARACTERS ? id : null

/** A new id of an event of the gateway. */
export const newEventId = (): string => `event_${shortId()}`

/** `of`: the id of the client's event. */
export function errorEvent(
  code: string,
  message: string,
  of: string | null = null,
  param: string | null = null,
): string {
  const error = { type: 'invalid_request_error', code, message, param, event_id: of }
  return JSON.stringify({ type: 'error', event_id: newEventId(), error })
}

// Nothing is fetched for a session, and a provider within the network might.
const DATA = /^data:/i

/** Throws an EventError for an image of `item` that is no data URL; `at` is the item's path. */
export function checkImages(item: unknown, at: string): void {
  if (!isObject(item)) return
  for (const field of ['content', 'output']) {
    for (const [index, part] of listIn(item[field]).entries()) {
      if (!isObject(part) || part.image_url == null) continue
      if (typeof part.image_url === 'string' && DATA.test(part.image_url)) continue
      const param = `${at}.${field}[${index}].image_url`
      throw new EventError('invalid_request', `${param}: must be a data URL; addresses are not fetched here`, param)
    }
  }
}
