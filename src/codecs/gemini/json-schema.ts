/** Converts Google's schema form to JSON Schema (docs/contributing/wire-sources.md#gemini). */
import { isObject, type Json, listIn } from '../../json/json.ts'
import { MAX_NAME_CHARACTERS } from '../../json/shape.ts'

/** Formats of number storage, and of enumerated strings. */
const STORED: ReadonlySet<unknown> = new Set(['enum', 'int32', 'int64', 'float', 'double'])
/** Counts, which this form writes as strings. */
const COUNTS = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'])
const SNAKE: Readonly<Record<string, string>> = {
  any_of: 'anyOf',
  min_items: 'minItems',
  max_items: 'maxItems',
  min_length: 'minLength',
  max_length: 'maxLength',
  property_ordering: 'propertyOrdering',
  additional_properties: 'additionalProperties',
}

/** Types in lower case, `nullable` as a type, properties in the order of `propertyOrdering`. */
export function jsonSchemaOf(schema: Json): Json {
  const made: [string, unknown][] = []
  const isNullable = schema.nullable === true
  for (const [given, member] of Object.entries(schema)) {
    const name = SNAKE[given] ?? given
    if (name === 'nullable' || name === 'propertyOrdering' || name === 'example') continue
    if (name === 'type') {
      const type = typeOf(member, isNullable)
      if (type !== undefined) made.push([name, type])
    } else if (name === 'format') {
      if (!STORED.has(member)) made.push([name, member])
    } else if (name === 'enum' && isNullable) made.push([name, [...listIn(member), null]])
    else if (name === 'properties' && isObject(member)) {
      made.push([name, propertiesOf(member, listIn(schema.propertyOrdering ?? schema.property_ordering))])
    } else if (COUNTS.has(name)) made.push([name, typeof member === 'string' ? Number(member) : member])
    else if (isObject(member)) made.push([name, name === '$defs' ? eachOf(member) : jsonSchemaOf(member)])
    else if (name === 'anyOf' || name === 'oneOf' || name === 'allOf') made.push([name, alternatives(member)])
    else made.push([name, member])
  }
  return Object.fromEntries(made)
}

function typeOf(type: unknown, isNullable: boolean): unknown {
  const types = (Array.isArray(type) ? type : [type]).map(one =>
    typeof one === 'string' ? one.toLowerCase() : (one ?? 'null'),
  )
  const known = types.filter(one => one !== 'type_unspecified')
  if (isNullable && !known.includes('null')) known.push('null')
  return known.length > 1 ? known : known[0]
}

const alternatives = (list: unknown): unknown[] => listIn(list).map(one => (isObject(one) ? jsonSchemaOf(one) : one))
const eachOf = (schemas: Json, names: readonly string[] = Object.keys(schemas)): Json =>
  Object.fromEntries(
    names.map(name => {
      const one = schemas[name]
      return [name, isObject(one) ? jsonSchemaOf(one) : one]
    }),
  )

function propertiesOf(properties: Json, order: readonly unknown[]): Json {
  if (order.length === 0) return eachOf(properties)
  const isName = (name: unknown): name is string =>
    typeof name === 'string' && name.length <= MAX_NAME_CHARACTERS && Object.hasOwn(properties, name)
  const first = order.filter(isName)
  const named = new Set(first)
  const rest = Object.keys(properties).filter(name => !named.has(name))
  return eachOf(properties, [...named, ...rest])
}
