/** Escapes tool names outside the wire's alphabet, so that answers can be decoded without state. */
import { type Event, errors } from '../../src/plugin.ts'

/** The tool whose input is a structured answer, for models without a native form. */
export const JSON_TOOL = 'json_answer'

const MAX_LENGTH = 128
/** Characters to escape: those outside the alphabet, and an underscore that would look like an escape. */
const FOREIGN = /[^a-zA-Z0-9_-]|_(?=u(?:10|[1-9a-f])?[0-9a-f]{4}(?:_|[^a-zA-Z0-9_-]))/gu
const ESCAPED = /_u((?:10|[1-9a-f])?[0-9a-f]{4})_/g

/** `.` → `_u002e_`. */
export const escapeCharacter = (character: string): string =>
  `_u${character.codePointAt(0)!.toString(16).padStart(4, '0')}_`

/** Never shorter than the name. */
const escaped = (name: string): string =>
  name === JSON_TOOL ? name.replace('_', escapeCharacter) : name.replace(FOREIGN, escapeCharacter)

/** `weather.get` → `weather_u002e_get`. Throws 400 when the result is longer than the wire allows. */
export function toWireName(name: string): string {
  const wire = name.length <= MAX_LENGTH ? escaped(name) : name
  if (wire.length <= MAX_LENGTH) return wire
  throw errors.invalidParameters(
    `The tool name "${name.slice(0, 64)}…" is too long; use at most ${MAX_LENGTH} of a-z, A-Z, 0-9, "_" and "-".`,
    'tools',
  )
}

/** The inverse of `toWireName`. A longer name is none that a provider was given, and stays as it is. */
export const fromWireName = (wire: string): string =>
  wire.length <= MAX_LENGTH && wire.includes('_u')
    ? wire.replace(ESCAPED, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)))
    : wire

/** Events with tool names in the caller's spelling. */
export function named(events: Event[]): Event[] {
  for (const event of events) if (event.type === 'tool' && event.name) event.name = fromWireName(event.name)
  return events
}
