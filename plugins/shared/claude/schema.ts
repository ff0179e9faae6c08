/** Converts JSON Schemas for structured outputs; unsupported keywords move to the description. */
import { isObject, type Json, listIn, textIn } from '../../../src/plugin.ts'
import { resolveRef } from '../tool-schema.ts'

/** Keywords kept unchanged. */
const KEPT = new Set(['$ref', '$schema', '$id', 'title', 'type', 'enum', 'const', 'default', 'required'])
/** Keywords whose value is a map of schemas. */
const MAPS = new Set(['properties', '$defs', 'definitions'])
/** Schemas within each other that are followed. */
const MAX_DEPTH = 200
/** The wire refuses schemas with more optional properties, or more unions. */
const MAX_OPTIONAL = 24
const MAX_UNIONS = 16
const FORMATS: ReadonlySet<unknown> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
])

/**
 * A copy of `schema` for `output_config.format` and strict tools: objects are closed, `oneOf` becomes `anyOf`, and
 * unsupported keywords move to the description.
 */
export function strictSchema(schema: Json): Json {
  const entries: [string, unknown][] = []
  const rules: string[] = []
  for (const [key, value] of Object.entries(schema)) {
    if (KEPT.has(key)) entries.push([key, value])
    else if (MAPS.has(key) && isObject(value)) entries.push([key, mapOf(value)])
    else if (key === 'items' && isObject(value)) entries.push([key, strictSchema(value)])
    else if ((key === 'anyOf' || key === 'allOf') && Array.isArray(value)) entries.push([key, value.map(member)])
    else if (key === 'oneOf' && Array.isArray(value) && !('anyOf' in schema)) {
      entries.push(['anyOf', value.map(member)])
    } else if (key === 'format' && FORMATS.has(value)) entries.push([key, value])
    else if (key === 'additionalProperties' ? isObject(value) : key !== 'description') {
      rules.push(`${key}: ${JSON.stringify(value)}`)
    }
  }
  if (isObjectSchema(schema)) entries.push(['additionalProperties', false])
  const description = [textIn(schema.description), rules.length > 0 && `(${rules.join(', ')})`]
    .filter(Boolean)
    .join(' ')
  if (description) entries.push(['description', description])
  // Not by assignment: a property may be called __proto__.
  return Object.fromEntries(entries)
}

const member = (schema: unknown): Json => (isObject(schema) ? strictSchema(schema) : {})

const mapOf = (schemas: Json): Json =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, member(schema)]))

function isObjectSchema({ type, properties }: Json): boolean {
  if (type === undefined) return isObject(properties)
  return type === 'object' || (Array.isArray(type) && type.includes('object'))
}

/**
 * Whether structured outputs take a schema. They refuse one that is recursive or too complex. Unless it is `strict`, an object
 * of any members does not fit either: it would be closed, and always empty.
 */
export function fitsStructuredOutputs(schema: Json, strict: boolean): boolean {
  const above = new Set<Json>()
  const seen = new Set<Json>()
  let optional = 0
  let unions = 0
  const visit = (value: unknown): boolean => {
    if (Array.isArray(value)) return value.every(visit)
    if (!isObject(value)) return true
    if (above.has(value) || above.size > MAX_DEPTH) return false
    if (seen.has(value)) return true
    seen.add(value)
    if (!strict && isObjectSchema(value) && isOpen(value)) return false
    above.add(value)
    const required = new Set(listIn(value.required))
    if (isObject(value.properties)) for (const name in value.properties) if (!required.has(name)) optional++
    if (Array.isArray(value.anyOf ?? value.oneOf ?? value.type)) unions++
    const { properties, items, additionalProperties: others, allOf, anyOf, oneOf } = value
    const isFit =
      [isObject(properties) && Object.values(properties), items, others, allOf, anyOf, oneOf].every(visit) &&
      (value.$ref === undefined || visit(resolveRef(value, schema)))
    above.delete(value)
    return isFit
  }
  return visit(schema) && optional <= MAX_OPTIONAL && unions <= MAX_UNIONS
}

function isOpen({ properties, additionalProperties: others, patternProperties, ...rest }: Json): boolean {
  if (isObject(others) || isObject(patternProperties)) return true
  const isNamed = isObject(properties) && Object.keys(properties).length > 0
  return !isNamed && others !== false && !['$ref', 'allOf', 'anyOf', 'oneOf', 'enum', 'const'].some(key => key in rest)
}
