/**
 * Bounds of a provider's answer. An answer beyond them ends its request and is charged: the caller made it so large,
 * and another provider would answer the same. An answer that no caller can cause is a failure of its provider.
 */
import { errors, type GatewayError } from '../lib/error.ts'
import { type Bounds, MAX_LEVELS, MAX_NAME_CHARACTERS, Shape } from './shape.ts'

const MAX_ANSWER_VALUES = 500_000
/** Maximum characters of text and reasoning held until the answer is whole. */
export const MAX_TEXT_CHARACTERS = 4 * 1024 * 1024
/** Maximum characters of the events decoded from one frame, without media; a whole answer is one frame. */
export const MAX_FRAME_CHARACTERS = 2 * MAX_TEXT_CHARACTERS
/** Bounds of any answer, unless its operation has others. */
export const ANSWER_BOUNDS: Bounds = { values: MAX_ANSWER_VALUES }
/** Bounds of an error body. Real ones hold some dozens of values, unless they repeat the request. */
export const ERROR_BOUNDS: Bounds = { values: 2000 }
/** Bounds of a job's state, which is read at every poll. Real ones hold some dozens of values. */
export const STATE_BOUNDS: Bounds = { values: 10_000 }

/** In the arguments of all calls, which come back in a request and are bounded there. */
export const MAX_CALL_CHARACTERS = 4 * 1024 * 1024
/** Tool calls of one answer. */
export const MAX_CALLS = 1000
/** Blocks of reasoning in one answer. */
export const MAX_REASONING_BLOCKS = 1000
/** Entries in the list of choices of one frame. */
export const MAX_CHOICES = 1024
/** Entries of one list: of parts, of blocks, of sources. */
const MAX_LIST_ENTRIES = 10_000
/** Shorter text, with two brackets for each level, cannot nest too deep. */
const MIN_PARSED_CHARACTERS = 2 * MAX_LEVELS

const beyond = (detail: string): GatewayError => errors.invalidAnswer(detail).with({ excess: 'size' })

const MIB = 1024 * 1024
/** Bytes of an answer, or of what is held of it, unless its operation has another bound. */
export const MAX_ANSWER_BYTES = 32 * MIB

/** The failure of an answer, or of what is here of it, that has more than `most` bytes. */
export const tooManyBytes = (most = MAX_ANSWER_BYTES): GatewayError =>
  beyond(`it is larger than ${Math.floor((most / MIB) * 10) / 10} MiB`)

/** The failure of an answer whose text and reasoning exceed `MAX_TEXT_CHARACTERS` while they are held. */
export const tooLongText = (): GatewayError => beyond(`its text is longer than ${MAX_TEXT_CHARACTERS} characters`)

/** The failure of an answer one frame of which exceeds `MAX_FRAME_CHARACTERS`. */
export const tooLongFrame = (): GatewayError =>
  beyond(`its text has more than ${MAX_FRAME_CHARACTERS} characters in one frame, media apart`)

const tooMany = (most: number, what: string): GatewayError =>
  beyond(`it holds more than ${most.toLocaleString('en')} ${what}`)

/** The failure of an answer with more than `MAX_CALLS`. */
export const tooManyCalls = (): GatewayError => billed(tooMany(MAX_CALLS, 'tool calls'))
/** The failure of an answer with more than `MAX_REASONING_BLOCKS`. */
export const tooManyBlocks = (): GatewayError => tooMany(MAX_REASONING_BLOCKS, 'blocks of reasoning')

/** Throws the failure of an answer when it has named more blocks, items or citations than a list may have entries. */
export function checkBlocks(count: number): void {
  if (count > MAX_LIST_ENTRIES) throw tooMany(MAX_LIST_ENTRIES, 'blocks')
}

/** Maximum events of one frame over all choices; more than the longest list has parts. */
const MAX_EVENTS = 20_000

/** Throws the failure of an answer one frame of which says more than a list may. */
export function checkEvents(count: number): void {
  if (count > MAX_EVENTS) throw tooMany(MAX_EVENTS, 'pieces in one frame')
}

/** The failure of an answer the arguments of whose calls exceed `MAX_CALL_CHARACTERS`. */
export const tooLongCalls = (): GatewayError =>
  billed(beyond(`the arguments of its tool calls are longer than ${MAX_CALL_CHARACTERS} characters`))

/** Throws the failure of an answer, or an event of one, that nests too deep or holds too many values. */
export function checkAnswer(json: string, bounds: Bounds = ANSWER_BOUNDS): void {
  if (json.length <= MIN_PARSED_CHARACTERS || isWithin(json, bounds)) return
  const shape = new Shape(bounds)
  shape.add(json)
  if (shape.excess !== undefined) throw excessive(shape)
}

/** Proves without a scan of each character that a short text is within its bounds: it has few characters and brackets. */
function isWithin(json: string, { values, names = values, nameLength = MAX_NAME_CHARACTERS }: Bounds): boolean {
  return json.length + MAX_LEVELS < Math.min(values, names, nameLength) && hasFewBrackets(json)
}

function hasFewBrackets(json: string): boolean {
  let count = 0
  for (const bracket of ['{', '[']) {
    for (let at = json.indexOf(bracket); at >= 0; at = json.indexOf(bracket, at + 1)) {
      if (++count > MAX_LEVELS) return false
    }
  }
  return true
}

const ofForm = (detail: string): GatewayError => errors.invalidAnswer(detail).with({ excess: 'form' })

/** The failure of an answer whose `shape` passes its bounds. */
function excessive({ excess, bounds }: Shape): GatewayError {
  if (excess === 'levels') return ofForm(`it nests deeper than ${MAX_LEVELS} levels`)
  if (excess === 'nameLength')
    return ofForm(`the name of a member in it has more than ${MAX_NAME_CHARACTERS} characters`)
  return excess === 'names' ? tooManyNames(bounds.names!) : tooMany(bounds.values, 'JSON values')
}

/** The failure of an answer whose calls have arguments of this `shape`, which passes its bounds. */
export const excessiveArguments = (shape: Shape): GatewayError => billed(excessive(shape))

/** A failure by what the caller had its model write, and the provider charges for: another model would write the same. */
export const billed = (error: GatewayError): GatewayError => error.with({ failover: false, billed: true })

/**
 * A failure that is charged where nothing of the answer was passed on, as its caller gets it: client programs that heed
 * `x-should-retry` do not repeat it of themselves, since each try would be charged.
 */
export function undelivered(error: GatewayError): GatewayError {
  const headers = { ...error.headers, 'x-should-retry': 'false' }
  const isExcess = error.status >= 500 && error.code !== 'overloaded'
  const message = isExcess
    ? `${error.message} The answer is charged. Request less at a time, or use another model.`
    : error.message
  return billed(error).with({ headers, message })
}

const tooManyNames = (most: number): GatewayError => tooMany(most, 'names of members')

/** As `JSON.parse`, for answers within the bounds. Throws a SyntaxError, or the failure of one that passes them. */
export function parseAnswer(json: string, bounds?: Bounds): unknown {
  checkAnswer(json, bounds)
  return JSON.parse(json)
}

/** A list of an answer; empty for any other value. Throws when the list has more than `most` entries. */
export function entriesIn(value: unknown, most = MAX_LIST_ENTRIES): readonly unknown[] {
  if (!Array.isArray(value)) return []
  if (value.length > most) throw tooMany(most, 'entries in one list')
  return value
}
