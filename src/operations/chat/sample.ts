/** Generates a value that fits a JSON Schema, from its simplest keywords; bounded in depth and size. */
import type { Json } from '../../json/json.ts'

const MAX_DEPTH = 8
const MAX_PROPERTIES = 100
/** Per sample: a recursive schema has no end. */
const MAX_VALUES = 500

/** Strings become `seed`, numbers their minimum or 1, arrays one element. */
export function sample(
  schema: unknown,
  seed: string,
  root: unknown = schema,
  depth = 0,
  budget = { left: MAX_VALUES },
): unknown {
  if (typeof schema !== 'object' || schema === null || depth > MAX_DEPTH || budget.left-- <= 0) return null
  const node = schema as Json
  if (typeof node.$ref === 'string') return sample(resolve(root, node.$ref), seed, root, depth + 1, budget)
  if ('const' in node) return node.const
  if (Array.isArray(node.enum)) return node.enum[0]
  for (const union of [node.anyOf, node.oneOf, node.allOf]) {
    if (Array.isArray(union)) return sample(union[0], seed, root, depth + 1, budget)
  }
  const type = Array.isArray(node.type) ? node.type[0] : node.type
  switch (type) {
    case 'string':
      return seed
    case 'integer':
    case 'number':
      return typeof node.minimum === 'number' ? node.minimum : 1
    case 'boolean':
      return true
    case 'array':
      return [sample(node.items ?? { type: 'string' }, seed, root, depth + 1, budget)]
    case 'null':
      return null
    default:
      return object(node, seed, root, depth, budget)
  }
}

function object(node: Json, seed: string, root: unknown, depth: number, budget: { left: number }): Json {
  const properties = Object.entries((node.properties ?? {}) as Json).slice(0, MAX_PROPERTIES)
  return Object.fromEntries(properties.map(([key, property]) => [key, sample(property, seed, root, depth + 1, budget)]))
}

/** `#/$defs/name` within the same schema; anything else stays unresolved. */
function resolve(root: unknown, reference: string): unknown {
  if (!reference.startsWith('#/')) return null
  let at: unknown = root
  for (const key of reference.slice(2).split('/')) {
    at = typeof at === 'object' && at !== null && Object.hasOwn(at, key) ? (at as Json)[key] : undefined
  }
  return at
}
