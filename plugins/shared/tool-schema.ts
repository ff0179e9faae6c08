/** Schemas of tools as all wires take them: one object at the root, and arrays that say what they hold. */
import { isObject, type Json, listIn, objectIn, type Tool, textIn } from '../../src/plugin.ts'
import { shortName } from './tool-name.ts'

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

type Called = Extract<Tool, { type: 'function' }>['function']

/** A function as chat completions and what resembles them take it. */
export const functionOf = ({ name, description, parameters, strict }: Called): Json => ({
  name: shortName(name),
  ...(description !== undefined && { description }),
  parameters: toolSchema(parameters),
  ...(typeof strict === 'boolean' && { strict }),
})

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
  const { properties, required } = membersOf(root)
  const rules = ALTERNATIVES.filter(key => key in root).map(key => {
    const parts = listIn(root[key]).map(part => ({ required: requiredBy(part, root) }))
    return `${key}: ${JSON.stringify(parts)}`
  })
  for (const key of ['enum', 'not']) if (key in root) rules.push(`${key}: ${JSON.stringify(root[key])}`)
  const description = [textIn(root.description), rules.length > 0 && `(${rules.join(', ')})`].filter(Boolean).join(' ')
  const own = ['type', 'properties', 'required', 'description', ...NOT_AT_ROOT]
  return Object.fromEntries<unknown>([
    ['type', textIn(root.type) ?? 'object'],
    ['properties', Object.fromEntries(properties)],
    ...(required.size > 0 ? [['required', [...required]] as const] : []),
    ...(description ? [['description', description] as const] : []),
    ...Object.entries(root).filter(([key]) => !own.includes(key)),
  ])
}

/**
 * Returns the properties that an object of `root` may have, and the names of those that it must have. A property that only
 * alternatives have is any of their forms. Takes time in proportion to the size of `root`.
 */
function membersOf(root: Json): { properties: [name: string, value: unknown][]; required: Set<unknown> } {
  const sure = new Map<string, unknown>()
  const forms = new Map<string, Map<string, unknown>>()
  const required = new Set<unknown>()
  const seen = new Set<Json>()
  const visit = (schema: unknown, isSure: boolean): void => {
    if (!isObject(schema) || seen.has(schema) || seen.size >= MAX_PARTS) return
    seen.add(schema)
    for (const [name, value] of Object.entries(objectIn(schema.properties))) {
      if (!isSure) forms.set(name, (forms.get(name) ?? new Map<string, unknown>()).set(JSON.stringify(value), value))
      else if (!sure.has(name)) sure.set(name, value)
    }
    if (isSure) for (const name of listIn(schema.required)) required.add(name)
    for (const part of [resolveRef(schema, root), ...listIn(schema.allOf)]) visit(part, isSure)
    for (const key of ALTERNATIVES) {
      const parts = listIn(schema[key])
      const needs = parts.map(part => new Set(requiredBy(part, root)))
      if (isSure) for (const name of needs[0] ?? []) if (needs.every(needed => needed.has(name))) required.add(name)
      for (const part of parts) visit(part, false)
    }
  }
  visit(root, true)
  for (const [name, values] of forms)
    if (!sure.has(name)) sure.set(name, values.size > 1 ? { anyOf: [...values.values()] } : [...values.values()][0])
  return { properties: [...sure], required }
}

const requiredBy = (part: unknown, root: Json): readonly unknown[] => listIn(objectIn(resolveRef(part, root)).required)

/** Returns the definition that `$ref` of `schema` names, or the schema itself. */
export function resolveRef(schema: unknown, root: Json): unknown {
  if (objectIn(schema).$ref === '#') return root
  const path = textIn(objectIn(schema).$ref)?.match(/^#\/(\$defs|definitions)\/([^/]+)$/)
  return path ? objectIn(root[path[1]!])[path[2]!] : schema
}
