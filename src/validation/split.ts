/**
 * Splits a schema so that each piece becomes a function of its own. V8 never optimises a function as long as that of a
 * whole chat request: checking one took six times as long.
 */
import type { JsonSchema } from '../core/schema.ts'

/**
 * Moves every nested schema to `$defs`, equal ones once. Members of a union stay in place, because its errors are
 * derived from them. Supports the keywords of `s`, which has no references of its own.
 */
export function split(json: JsonSchema): JsonSchema {
  const names = new Map<string, string>()
  const definitions: Record<string, JsonSchema> = {}

  const refer = (schema: JsonSchema): JsonSchema => {
    if (!holdsMore(schema)) return schema
    // The parent fills in the default.
    const { default: initial, ...rest } = schema
    const text = JSON.stringify(rest)
    let name = names.get(text)
    if (!name) {
      name = `d${names.size}`
      names.set(text, name)
      definitions[name] = within(rest)
    }
    return { $ref: `#/$defs/${name}`, ...('default' in schema && { default: initial }) }
  }

  const within = (schema: JsonSchema): JsonSchema => {
    const { properties, items, additionalProperties: others, anyOf, oneOf } = schema
    return {
      ...schema,
      ...(isObject(properties) && { properties: mapValues(properties, refer) }),
      ...(isObject(items) && { items: refer(items) }),
      ...(isObject(others) && { additionalProperties: refer(others) }),
      ...(Array.isArray(anyOf) && { anyOf: anyOf.map(within) }),
      ...(Array.isArray(oneOf) && { oneOf: oneOf.map(within) }),
    }
  }

  return { ...within(json), $defs: definitions }
}

const holdsMore = ({ properties, items, additionalProperties: others, anyOf, oneOf }: JsonSchema): boolean =>
  [properties, items, others, anyOf, oneOf].some(value => typeof value === 'object')

const isObject = (value: unknown): value is Record<string, JsonSchema> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const mapValues = (map: Readonly<Record<string, JsonSchema>>, change: (value: JsonSchema) => JsonSchema) =>
  Object.fromEntries(Object.entries(map).map(([key, value]) => [key, change(value)]))
