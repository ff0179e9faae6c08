/** Tool names in a wire's alphabet. Escaped names are decoded without state, cut ones by the tools of the request. */
import { createHash } from 'node:crypto'
import { type ChatRequest, type Decoder, type Event, errors } from '../../src/plugin.ts'

/** The tool whose input is a structured answer, for models without a native form. */
export const JSON_TOOL = 'json_answer'

const MAX_NAME_CHARACTERS = 128
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
  const wire = name.length <= MAX_NAME_CHARACTERS ? escaped(name) : name
  if (wire.length <= MAX_NAME_CHARACTERS) return wire
  throw errors.invalidParameters(
    `The tool name "${name.slice(0, 64)}…" is too long; use at most ${MAX_NAME_CHARACTERS} of a-z, A-Z, 0-9, "_" and "-".`,
    'tools',
  )
}

/** The inverse of `toWireName`. A longer name is none that a provider was given, and stays as it is. */
export const fromWireName = (wire: string): string =>
  wire.length <= MAX_NAME_CHARACTERS && wire.includes('_u')
    ? wire.replace(ESCAPED, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)))
    : wire

const SHORT_NAME_CHARACTERS = 64
const HASH_CHARACTERS = 8

/** As `toWireName`, for wires whose names are shorter than a client's: a longer name is cut and ends in its hash. */
export function shortName(name: string, most = SHORT_NAME_CHARACTERS): string {
  const wire = name.length <= most ? escaped(name) : name
  if (wire.length <= most) return wire
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_CHARACTERS)
  return `${name.slice(0, most - HASH_CHARACTERS - 1).replace(/[^a-zA-Z0-9_-]/g, '_')}_${hash}`
}

const unchanged = (wire: string): string => wire

/**
 * Gives calls of `decoder` the names of the tools of `request` again where `shortName` gave them others. `read` is what the
 * decoder makes of a name.
 */
export function withClientNames(
  decoder: Decoder,
  request: Readonly<ChatRequest> | undefined,
  read = unchanged,
  most = SHORT_NAME_CHARACTERS,
): Decoder {
  let names: Map<string, string> | undefined
  for (const tool of request?.tools ?? []) {
    const name = tool.type === 'function' ? tool.function.name : tool.type === 'custom' ? tool.custom.name : ''
    const seen = read(shortName(name, most))
    if (seen !== name) names = (names ?? new Map<string, string>()).set(seen, name)
  }
  if (!names) return decoder
  const { frame, end } = decoder
  decoder.frame = given => named(frame.call(decoder, given), names)
  decoder.end = () => named(end.call(decoder), names)
  return decoder
}

/** Events with tool names in the caller's spelling: those of `names`, else decoded. */
export function named(events: Event[], names?: ReadonlyMap<string, string>): Event[] {
  for (const event of events)
    if (event.type === 'tool' && event.name)
      event.name = names ? (names.get(event.name) ?? event.name) : fromWireName(event.name)
  return events
}
