/** Function call arguments that arrive as values at JSON paths: `$.recipe.items[0].name`. */
import { isObject, type Json, MAX_LEVELS } from '../../src/plugin.ts'
import { CallCount } from '../shared/call-count.ts'

/** Maximum total length of all lists of an answer; a path beyond it is invalid. */
const MAX_ITEMS = 32_768

/** Limits the size of all calls in one answer, across its candidates. */
export class PathCount extends CallCount {
  /** In lists, including empty ones. */
  places = 0
}

type PathSegment = string | number

/** The arguments of one call, as far as they have come (`partialArgs` of Vertex AI's streaming function calls). */
export class PartialArgs {
  /** Without a prototype, so that any name is safe. */
  readonly #root: Json = Object.create(null)
  readonly #count: PathCount

  constructor(count: PathCount) {
    this.#count = count
  }

  /** Adds one entry of `partialArgs`; strings at one path are concatenated. False for an unreadable entry. */
  add(entry: unknown): boolean {
    if (!isObject(entry)) return false
    const segments = segmentsOf(entry.jsonPath)
    const value = typedValue(entry)
    if (!segments || value === undefined) return false
    let holder: Json | unknown[] = this.#root
    for (const [i, step] of segments.entries()) {
      if (Array.isArray(holder) !== (typeof step === 'number')) return false
      if (Array.isArray(holder) && !this.#reaches(holder, Number(step))) return false
      const inner: unknown = Reflect.get(holder, step)
      const next = segments[i + 1]
      if (next === undefined) {
        const grown = typeof inner === 'string' && typeof value === 'string' ? inner + value : value
        return Reflect.set(holder, step, grown)
      }
      if (inner === undefined) {
        const made: Json | unknown[] = typeof next === 'number' ? [] : Object.create(null)
        Reflect.set(holder, step, made)
        holder = made
      } else if (isObject(inner) || Array.isArray(inner)) holder = inner
      else return false
    }
    return false
  }

  /** False for an index that would exceed the limit of list places. */
  #reaches({ length }: readonly unknown[], index: number): boolean {
    this.#count.places += Math.max(0, index + 1 - length)
    return this.#count.places <= MAX_ITEMS
  }

  /** The arguments so far, as JSON text. */
  toString(): string {
    return JSON.stringify(this.#root)
  }
}

/** `$.a[0]['b c']` → `a`, 0, `b c`. Undefined for any other text; the root itself cannot hold a value. */
function segmentsOf(path: unknown): PathSegment[] | undefined {
  if (typeof path !== 'string' || !path.startsWith('$')) return undefined
  const segments: PathSegment[] = []
  const token = /\.([^.[\]]+)|\[(\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]/y
  token.lastIndex = 1
  while (token.lastIndex < path.length) {
    const match = token.exec(path)
    if (!match) return undefined
    const [, name, index, single, double] = match
    if (segments.length === MAX_LEVELS || (index !== undefined && Number(index) >= MAX_ITEMS)) return undefined
    segments.push(index === undefined ? (name ?? single ?? double ?? '') : Number(index))
  }
  return segments.length > 0 ? segments : undefined
}

/** The value of an entry, whose field names its type. */
function typedValue(entry: Json): string | number | boolean | null | undefined {
  const { stringValue: text, numberValue: number, boolValue: truth } = entry
  if (typeof text === 'string') return text
  if (typeof number === 'number') return number
  if (typeof truth === 'boolean') return truth
  return 'nullValue' in entry ? null : undefined
}
