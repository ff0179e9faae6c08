/** Keeps members of a citation that only its provider reads, such as `encrypted_index`. */
import { isObject, type Json } from './json.ts'

const OPAQUE = 'encrypted_'
/** Stands before a value without a seal that holds. No provider has an empty id, so none made it. */
const LOOSE = ':'

/**
 * The citation with what `change` makes of each opaque member; itself where it has none. Undefined where `change` is
 * undefined for one of them.
 */
export function withOpaque<C>(citation: C, change: (value: unknown) => unknown): C | Json | undefined {
  if (!isObject(citation)) return citation
  let changed: Json | undefined
  for (const name in citation) {
    if (!name.startsWith(OPAQUE) || citation[name] == null) continue
    const value = change(citation[name])
    if (value === undefined) return undefined
    changed ??= { ...(citation as Json) }
    changed[name] = value
  }
  return changed ?? citation
}

/** Marks a value of which no seal holds: an organization's own credentials may still carry it. */
export const loose = (value: string): string => LOOSE + value

/** Returns the value that `loose` marked, unchanged; undefined for any other value. */
export const looseIn = (value: string): string | undefined =>
  value.startsWith(LOOSE) ? value.slice(LOOSE.length) : undefined
