/** Events of sessions: reading them within bounds, and the errors that clients get. */
import { isObject, type Json } from '../core/json.ts'
import { parseSteps } from '../core/json-steps.ts'
import { CALL_BOUNDS, Shape } from '../core/shape.ts'
import { shortId } from '../lib/id.ts'
import { turnBudget } from '../lib/turn-budget.ts'
import { turns } from '../lib/turns.ts'

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

/** Characters from which an event is read in turns. */
const LARGE = 64 * 1024
/** Characters that are measured in one step. */
const STEP = 256 * 1024

/** Undefined for what is no event, or is more than one may hold. */
export function readEvent(text: string): RealtimeEvent | undefined {
  const shape = new Shape(CALL_BOUNDS)
  shape.add(text)
  return shape.excess === undefined ? parsed(text) : undefined
}

/** The same; a large event is read in steps, in the turns of its tenant, and any other one in a turn that has room. */
export function readInTurns(
  text: string,
  tenant: string,
): ReturnType<typeof readEvent> | Promise<ReturnType<typeof readEvent>> {
  if (text.length >= LARGE) return turns.run(tenant, readSteps(text))
  const turn = turnBudget.next(tenant)
  return turn ? turn.then(() => readEvent(text)) : readEvent(text)
}

function* readSteps(text: string): Generator<undefined, RealtimeEvent | undefined> {
  const shape = new Shape(CALL_BOUNDS)
  for (let at = 0; at < text.length; at += STEP) {
    shape.add(text.slice(at, at + STEP))
    if (shape.excess !== undefined) return undefined
    yield
  }
  try {
    const event = eventIn(yield* parseSteps(text, json => JSON.parse(json)))
    yield
    return event
  } catch {
    return undefined
  }
}

const eventIn = (value: unknown): RealtimeEvent | undefined =>
  isObject(value) && typeof value.type === 'string' ? (value as RealtimeEvent) : undefined

function parsed(text: string): RealtimeEvent | undefined {
  try {
    return eventIn(JSON.parse(text))
  } catch {
    return undefined
  }
}

const MAX_ID = 128
/** The id that a client gave its event. */
export const idOf = ({ event_id: id }: Readonly<Json>): string | null =>
  typeof id === 'string' && id.length <= MAX_ID ? id : null

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
