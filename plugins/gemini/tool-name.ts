/** Escapes tool names outside the wire's alphabet, so that answers can be decoded without state (R19). */
import { errors } from '../../src/plugin.ts'
import { escapeCharacter } from '../shared/tool-name.ts'

export { fromWireName } from '../shared/tool-name.ts'

const MAX_NAME_CHARACTERS = 128
/**
 * Characters to escape: those outside `[a-zA-Z_][a-zA-Z0-9_.:-]*`, an invalid first character, and an underscore that
 * would look like an escape.
 */
const FOREIGN = /[^a-zA-Z0-9_.:-]|^[^a-zA-Z_]|_(?=u(?:10|[1-9a-f])?[0-9a-f]{4}(?:_|[^a-zA-Z0-9_.:-]))/gu

/** `3d print` → `_u0033_d_u0020_print`. Throws 400 when the result is longer than the wire allows. */
export function toWireName(name: string): string {
  const wire = name.length <= MAX_NAME_CHARACTERS ? name.replace(FOREIGN, escapeCharacter) : name
  if (wire.length <= MAX_NAME_CHARACTERS) return wire
  throw errors.invalidParameters(
    `The tool name "${name.slice(0, 64)}…" is too long; use at most ${MAX_NAME_CHARACTERS} of a-z, A-Z, 0-9, "_", ".", ":" and "-".`,
    'tools',
  )
}
