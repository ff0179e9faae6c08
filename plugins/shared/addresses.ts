/** What a client's own body names for its provider to fetch. */
import { isObject, type Json } from '../../src/plugin.ts'

/** Whether a field of `holder` may say where something is to be fetched. */
export type NamesSource = (field: string, holder: Readonly<Json>) => boolean

const DATA = /^data:/i

/**
 * Whether the body has such a field, however deep, whose text is no data URL, or whose object has a `url` that is none.
 * Takes time by the number of its values.
 */
export function refers(body: Readonly<Json>, names: NamesSource): boolean {
  const left: unknown[] = [body]
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    if (Array.isArray(value)) for (const one of value) push(left, one)
    else if (isObject(value)) {
      for (const field in value) {
        const inner = value[field]
        if (names(field, value) && (isElsewhere(inner) || (isObject(inner) && isElsewhere(inner.url)))) return true
        push(left, inner)
      }
    }
  }
  return false
}

function push(left: unknown[], value: unknown): void {
  if (typeof value === 'object' && value !== null) left.push(value)
}

const isElsewhere = (text: unknown): boolean => typeof text === 'string' && text !== '' && !DATA.test(text)
