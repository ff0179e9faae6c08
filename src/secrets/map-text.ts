/** Changes the texts of a JSON value, such as those that hold secrets. */
import { MASK } from './mask.ts'

/** Values that nest deeper are not shown. */
const MAX_DEPTH = 200

/**
 * A copy of `value` with `change` applied to each text at any depth, and to the names of members below the first level.
 * The same value when nothing changes. Skips bytes.
 */
export function mapText<T>(value: T, change: (text: string) => string): T {
  return mapped(value, change, 0) as T
}

function mapped(value: unknown, change: (text: string) => string, depth: number): unknown {
  if (typeof value === 'string') return change(value)
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  if (depth > MAX_DEPTH) return MASK
  if (Array.isArray(value)) return items(value, change, depth + 1)
  let changed: Record<string, unknown> | undefined
  for (const name in value) {
    const member = (value as Record<string, unknown>)[name]
    const clean = mapped(member, change, depth + 1)
    const key = depth === 0 ? name : change(name)
    if (clean === member && key === name) continue
    changed ??= { ...value }
    if (key !== name) delete changed[name]
    changed[key] = clean
  }
  return changed ?? value
}

/** Maps a list in a plain loop: an embedding has thousands of numbers. */
function items(list: readonly unknown[], change: (text: string) => string, depth: number): readonly unknown[] {
  let changed: unknown[] | undefined
  for (let index = 0; index < list.length; index++) {
    const item = list[index]
    if (typeof item === 'number') continue
    const clean = mapped(item, change, depth)
    if (clean === item) continue
    changed ??= list.slice()
    changed[index] = clean
  }
  return changed ?? list
}
