/** Tool names in the wire's alphabet, [a-zA-Z0-9_-]{1,64}. */
import { errors } from '../../src/plugin.ts'
import { toWireName as spell } from '../shared/tool-name.ts'

const MAX_LENGTH = 64

/** `weather.get` → `weather_u002e_get`. Throws 400 when the result is longer than the wire allows. */
export function toWireName(name: string): string {
  const wire = name.length <= MAX_LENGTH ? spell(name) : name
  if (wire.length <= MAX_LENGTH) return wire
  throw errors.invalidParameters(
    `The tool name "${name.slice(0, 64)}" is too long; use at most ${MAX_LENGTH} of a-z, A-Z, 0-9, "_" and "-".`,
    'tools',
  )
}
