/** Events of sessions: reading them within bounds, writing large ones, and the errors that clients get. */
import { textSteps } from '../core/frame-steps.ts'
import { isObject, type Json } from '../core/json.ts'
import { parseSteps } from '../core/json-steps.ts'
import { CALL_BOUNDS, Shape } from '../core/shape.ts'
import { stringifySteps } from '../core/stringify-steps.ts'
import { shortId } from '../lib/id.ts'
import type { Mask } from '../lib/mask.ts'
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

/** A message that is an event; `text` is masked. */
export interface ReadEvent {
  readonly event: RealtimeEvent
  readonly text: string
}

/** Characters that are measured in one step. */
const STEP = 256 * 1024

/**
 * Undefined for what is no event, or is more than one may hold. A large message is read in steps, in the turns of its tenant:
 * what goes on behind it is one more. Any other one is read in a turn that has room. `mask`: of the side's credential.
 */
export function readInTurns(
  message: string | Buffer,
  tenant: string,
  mask?: Mask,
): ReadEvent | undefined | Promise<ReadEvent | undefined> {
  if (typeof message !== 'string') return turns.run(tenant, readSteps(message, mask))
  const turn = turnBudget.next(tenant)
  return turn ? turn.then(() => read(message, mask)) : read(message, mask)
}

function read(message: string, mask: Mask | undefined): ReadEvent | undefined {
  const text = mask?.answer(message) ?? message
  const shape = new Shape(CALL_BOUNDS)
  shape.add(text)
  const event = shape.excess === undefined ? parsed(text) : undefined
  return event && { event, text }
}

/** Reads a large message, in UTF-8. */
export function* readSteps(message: Buffer, mask?: Mask): Generator<undefined, ReadEvent | undefined> {
  const whole = yield* textSteps(message)
  const text = mask ? yield* mask.answerSteps(whole) : whole
  const shape = new Shape(CALL_BOUNDS)
  for (let at = 0; at < text.length; at += STEP) {
    shape.add(text.slice(at, at + STEP))
    if (shape.excess !== undefined) return undefined
    yield
  }
  try {
    const event = eventIn(yield* parseSteps(text, json => JSON.parse(json)))
    yield
    return event && { event, text }
  } catch {
    return undefined
  }
}

/** A large event as JSON in UTF-8; what goes on behind it is one more step. */
export function* writeSteps(event: Readonly<Json>): Generator<undefined, Buffer> {
  const pieces = yield* stringifySteps(event)
  yield
  const bytes = Buffer.concat(pieces)
  yield
  return bytes
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
