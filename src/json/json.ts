/** JSON of any shape: reading what providers leave out, set to null or give another type, and cleaning what goes out. */
import { errors } from '../lib/error.ts'

/** A JSON object of unknown members. */
export type Json = Record<string, unknown>

/** False for null and for lists. */
export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A string that says something. */
export const textIn = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** The beginning of a text, for a message; the type of any other value, of which `String` makes no text or throws. */
export const excerptOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 100) : typeof value)

/** A place in a list, as far as it can be believed; no answer has more choices, calls or blocks than this. */
export const indexIn = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 1024 ? value : undefined

/** A count, in whole units; undefined for any other value. */
export const countIn = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && value < Infinity ? Math.ceil(value) : undefined

/** An object; empty for any other value. */
export const objectIn = (value: unknown): Json => (isObject(value) ? value : {})

/** A list; empty for any other value. */
export const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** The value of JSON text; undefined for text that is no JSON. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Part of Node 20; the type library of its language level does not know it yet. */
type Unicode = string & { isWellFormed(): boolean; toWellFormed(): string }

/** Whether a text has no half of a character. */
export const isWellFormed = (text: string): boolean => (text as Unicode).isWellFormed()

/** Deeper than any request may be; arguments and results of tools come as text without a known size. */
const MAX_DEPTH = 256

/**
 * `value` with every lone half of a surrogate pair replaced, because providers refuse JSON that holds one (edge case
 * R20). What needs no change is shared, not copied. Throws 400 for what nests too deep to be sent.
 */
export const wellFormed = <T>(value: T): T => clean(value, 0) as T

function clean(value: unknown, depth: number): unknown {
  if (typeof value === 'string') {
    const text = value as Unicode
    return text.isWellFormed() ? text : text.toWellFormed()
  }
  if (typeof value !== 'object' || value === null) return value
  if (depth === MAX_DEPTH) throw errors.tooDeep(MAX_DEPTH)
  if (Array.isArray(value)) {
    let copy: unknown[] | undefined
    for (const [index, inner] of value.entries()) {
      const sound = clean(inner, depth + 1)
      if (sound === inner) continue
      copy ??= [...value]
      copy[index] = sound
    }
    return copy ?? value
  }
  // Nothing is made of an object that needs no change, as most do.
  let entries: [string, unknown][] | undefined
  const keys = Object.keys(value)
  for (const [index, key] of keys.entries()) {
    const inner = (value as Json)[key]
    const [name, sound] = [isWellFormed(key) ? key : (key as Unicode).toWellFormed(), clean(inner, depth + 1)]
    if (entries === undefined && name === key && sound === inner) continue
    entries ??= keys.slice(0, index).map(before => [before, (value as Json)[before]])
    entries.push([name, sound])
  }
  // Not by assignment: a property may be called __proto__.
  return entries ? Object.fromEntries(entries) : value
}
