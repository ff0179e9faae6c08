/** Lone halves of surrogate pairs: the wire refuses JSON that holds one (R20). */

const LONE = /\p{Surrogate}/u

/** `value` with every lone half replaced. What holds none is shared, not copied; media data is not searched. */
export function wellFormed<T>(value: T): T {
  return (typeof value === 'string' ? clean(value) : typeof value === 'object' ? cleanTree(value) : value) as T
}

const clean = (text: string): string => (LONE.test(text) ? text.replace(/\p{Surrogate}/gu, '\ufffd') : text)

function cleanTree(tree: unknown): unknown {
  if (tree === null) return tree
  if (Array.isArray(tree)) {
    const copy = tree.map(wellFormed)
    return copy.some((element, i) => element !== tree[i]) ? copy : tree
  }
  let changed = false
  const entries = Object.entries(tree as object).map(([key, value]): [string, unknown] => {
    const entry: [string, unknown] = [clean(key), key === 'bytes' ? value : wellFormed(value)]
    changed ||= entry[0] !== key || entry[1] !== value
    return entry
  })
  // Not by assignment: a property may be called __proto__.
  return changed ? Object.fromEntries(entries) : tree
}
