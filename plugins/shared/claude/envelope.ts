/** Answers by tool that the model wraps in one member, such as `{"parameters": {…}}`. */
import { errors, isObject, type Json, jsonIn, objectIn } from '../../../src/plugin.ts'

/** Characters in which the first name of an answer must stand. */
const MAX_HEAD_CHARACTERS = 1024
const HEAD = /^\s*\{\s*("(?:[^"\\]|\\.)*")\s*:\s*(\S)/
/** Steps of one comparison; what takes more fits. */
const MAX_STEPS = 100_000

/** Undefined while an answer's first name has not come; true where its first member may be an envelope of the answer. */
export function mayBeEnvelope(head: string, schema: Json): boolean | undefined {
  const [, name, first] = HEAD.exec(head) ?? []
  if (name === undefined) return /^\s*(?:\{|$)/.test(head) && head.length < MAX_HEAD_CHARACTERS ? undefined : false
  const { properties } = resolved(schema, schema)
  if (!isObject(properties)) return (first === '{' || first === '"') && hasMore(schema)
  const own = memberOf(properties, nameIn(name))
  return own === undefined || (first === '{' && isObject(own) && typeof own.type === 'string' && own.type !== 'object')
}

/**
 * The answer in `text`: the content of an envelope where that fits the schema and the whole does not. Throws the error
 * of an answer whose only member the schema does not know. What is no JSON, or has more members, stays as it is.
 */
export function unwrapped(text: string, schema: Json): string {
  const head = text.slice(0, MAX_HEAD_CHARACTERS)
  if (!mayBeEnvelope(head, schema)) return text
  const whole = jsonIn(text)
  const names = isObject(whole) ? Object.keys(whole) : []
  const [name] = names
  if (!isObject(whole) || name === undefined || names.length > 1 || fits(whole, schema)) return text
  const content = whole[name]
  // The value between the colon and the last brace, with every digit as it was written.
  const from = HEAD.exec(head)![0].length - 1
  const json = typeof content === 'string' ? content : text.slice(from, text.lastIndexOf('}')).trim()
  const inner = jsonIn(json)
  if (isObject(inner) && fits(inner, schema)) return json
  const { properties } = resolved(schema, schema)
  if (!isObject(properties) || memberOf(properties, name) !== undefined) return text
  throw errors.invalidAnswer(`its only member ${JSON.stringify(name.slice(0, 64))} is not in the requested schema`)
}

const nameIn = (json: string): string => String(jsonIn(json))
const memberOf = (members: Json, name: string): unknown => (Object.hasOwn(members, name) ? members[name] : undefined)
const hasMore = ({ $ref, anyOf, oneOf, allOf }: Json): boolean => [$ref, anyOf, oneOf, allOf].some(more => more != null)

/** A schema, or the one that its local `$ref` names. */
function resolved(schema: Json, root: Json): Json {
  let at: unknown = schema
  for (let hops = 0; hops < 8 && isObject(at) && typeof at.$ref === 'string' && at.$ref.startsWith('#'); hops++) {
    let found: unknown = root
    for (const step of at.$ref.split('/').slice(1)) found = isObject(found) ? memberOf(found, step) : undefined
    at = found
  }
  return objectIn(at)
}

/** Compares types, names, enumerations and combinations; other keywords do not tell an envelope from its content. */
function fits(value: unknown, schema: Json): boolean {
  let steps = 0
  const every = (value: unknown, given: unknown): boolean => {
    if (given === false || value === undefined) return false
    if (!isObject(given) || ++steps > MAX_STEPS) return true
    const { type, enum: options, const: only, required, properties, ...more } = resolved(given, schema)
    const { additionalProperties: others, items, allOf, anyOf, oneOf } = more
    if (type !== undefined && ![type].flat().some(name => isOf(value, name))) return false
    if (Array.isArray(options) && !options.some(option => isSame(option, value))) return false
    if (only !== undefined && !isSame(only, value)) return false
    if (Array.isArray(allOf) && !allOf.every(one => every(value, one))) return false
    for (const some of [anyOf, oneOf]) if (Array.isArray(some) && !some.some(one => every(value, one))) return false
    if (Array.isArray(value)) return items === undefined || value.every(item => every(item, items))
    if (!isObject(value)) return true
    if (Array.isArray(required) && !required.every(name => Object.hasOwn(value, String(name)))) return false
    return Object.entries(value).every(([name, member]) =>
      every(member, isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : others),
    )
  }
  return every(value, schema)
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

function isOf(value: unknown, type: unknown): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  return type === 'integer' ? Number.isInteger(value) : typeof value === type
}
