/** Marks that stand for long strings in JSON text while the rest of it is parsed, or written. */
import { randomBytes } from 'node:crypto'

/** Random, so that no text contains it; letters only, so that it is base64, and nothing that JSON escapes. */
const MARK = [...randomBytes(24)].map(byte => String.fromCharCode(0x61 + (byte & 15))).join('')
const DIGITS = 8
const LENGTH = MARK.length + DIGITS

/** Stands for the long string of that index. */
export const markOf = (index: number): string => MARK + String(index).padStart(DIGITS, '0')

/** The value with texts in place of the strings that are marks; changes its lists and objects. */
export function restored(value: unknown, textAt: (index: number) => string | undefined): unknown {
  if (typeof value === 'string')
    return value.length === LENGTH && value.startsWith(MARK) ? textAt(Number(value.slice(MARK.length))) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) for (let at = 0; at < value.length; at++) value[at] = restored(value[at], textAt)
  else {
    const members = value as Record<string, unknown>
    for (const name in members) members[name] = restored(members[name], textAt)
  }
  return value
}
