/** Schemas of tools as all wires take them: one object at the root, and arrays that say what they hold. */
import { isObject, type Json, listIn, objectIn, textIn } from '../../src/plugin.ts'

const NO_PARAMETERS: Json = { type: 'object', properties: {} }
const ALTERNATIVES = ['anyOf', 'oneOf']
/** Keywords that the providers of Claude and of GPT refuse at the root. */
const NOT_AT_ROOT = ['$ref', 'allOf', ...ALTERNATIVES, 'enum', 'not']
/** Keywords of maps of schemas, and those of a schema or a list of schemas. */
const MAPS: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'definitions'])
const SCHEMAS: ReadonlySet<string> = new Set([
  'items',
  'prefixItems',
  'additionalProperties',
  'allOf',
  'not',
  ...ALTERNATIVES,
])
/** Schemas that the root of one tool may be made of. */
const MAX_PARTS = 200

/**
 * The parameters of a tool. Properties of alternatives at the root become properties of the root, and the description says
 * what the alternatives require. Arrays get `items`. Returns `parameters` itself where nothing is to change.
 */
export function toolSchema(parameters: Json | undefined): Json {
  if (!parameters || Object.keys(parameters).length === 0) return NO_PARAMETERS
  const schema = withItems(parameters) as Json
  const isPlain = schema.type === 'object' && isObject(schema.properties) && !NOT_AT_ROOT.some(key => key in schema)
  return isPlain ? schema : plainRoot(schema)
}

/** Returns `value` itself where all arrays have items. */
function withItems(value: unknown, isMap = false): unknown {
  if (Array.isArray(value)) {
    const made = value.map(schema => withItems(schema))
    return made.some((schema, i) => schema !== value[i]) ? made : value
  }
  if (!isObject(value)) return value
  const isArray = !isMap && (value.type === 'array' || listIn(value.type).includes('array'))
  let made = isArray && value.items === undefined ? { ...value, items: {} } : value
  for (const key of Object.keys(value)) {
    if (!isMap && !MAPS.has(key) && !SCHEMAS.has(key)) continue
    const schema = withItems(value[key], !isMap && MAPS.has(key))
    if (schema === value[key]) continue
    if (made === value) made = { ...value }
    made[key] = schema
  }
  return made
}

function plainRoot(root: Json): Json {
  const properties = new Map<string, unknown>()
  const required = [...collect(root, root, properties, new Set())]
  const rules = ALTERNATIVES.filter(key => key in root).map(key => {
    const parts = listIn(root[key]).map(part => ({ required: listIn(objectIn(resolveRef(part, root)).required) }))
    return `${key}: ${JSON.stringify(parts)}`
  })
  for (const key of ['enum', 'not']) if (key in root) rules.push(`${key}: ${JSON.stringify(root[key])}`)
  const description = [textIn(root.description), rules.length > 0 && `(${rules.join(', ')})`].filter(Boolean).join(' ')
  const own = ['type', 'properties', 'required', 'description', ...NOT_AT_ROOT]
  return Object.fromEntries<unknown>([
    ['type', textIn(root.type) ?? 'object'],
    ['properties', Object.fromEntries(properties)],
    ...(required.length > 0 ? [['required', required] as const] : []),
    ...(description ? [['description', description] as const] : []),
    ...Object.entries(root).filter(([key]) => !own.includes(key)),
  ])
}

/** Adds the properties that an object of `schema` may have to `found`. Returns those that it must have. */
function collect(schema: unknown, root: Json, found: Map<string, unknown>, seen: Set<Json>): Set<unknown> {
  if (!isObject(schema) || seen.has(schema) || seen.size >= MAX_PARTS) return new Set()
  seen.add(schema)
  const required = new Set(listIn(schema.required))
  const add = (properties: Iterable<[string, unknown]>) => {
    for (const [name, value] of properties) if (!found.has(name)) found.set(name, value)
  }
  add(Object.entries(objectIn(schema.properties)))
  for (const part of [resolveRef(schema, root), ...listIn(schema.allOf)])
    for (const name of collect(part, root, found, seen)) required.add(name)
  for (const key of ALTERNATIVES) {
    const forms = new Map<string, Map<string, unknown>>()
    const needs = listIn(schema[key]).map(part => {
      const properties = new Map<string, unknown>()
      const needed = collect(part, root, properties, seen)
      for (const [name, value] of properties)
        forms.set(name, (forms.get(name) ?? new Map<string, unknown>()).set(JSON.stringify(value), value))
      return needed
    })
    for (const name of needs[0] ?? []) if (needs.every(needed => needed.has(name))) required.add(name)
    add(
      [...forms].map(([name, values]) => [
        name,
        values.size > 1 ? { anyOf: [...values.values()] } : [...values.values()][0],
      ]),
    )
  }
  return required
}

/** Returns the definition that `$ref` of `schema` names, or the schema itself. */
export function resolveRef(schema: unknown, root: Json): unknown {
  if (objectIn(schema).$ref === '#') return root
  const path = textIn(objectIn(schema).$ref)?.match(/^#\/(\$defs|definitions)\/([^/]+)$/)
  return path ? objectIn(root[path[1]!])[path[2]!] : schema
}
