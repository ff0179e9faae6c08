/**
 * A schema in pieces, so that each becomes a function of its own. The engine never optimises a function as long as all
 * that a chat request may say: checking one took six times as long.
 */
import type { JsonSchema } from '../core/schema.ts'

/**
 * The same schema with everything that holds further schemas referred to in `$defs`; what occurs twice is there once.
 * Members of a union stay in it: what is wrong with a union is told by what they are. Takes the keywords of `s`, which
 * has no references of its own.
 */
export function split(json: JsonSchema): JsonSchema {
  const names = new Map<string, string>()
  const definitions: Record<string, JsonSchema> = {}

  const refer = (schema: JsonSchema): JsonSchema => {
    if (!holdsMore(schema)) return schema
    // Whoever holds it fills its default in.
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
