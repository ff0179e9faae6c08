/** Converts a form's parts to the equivalent JSON body, by the schema of that body (docs/contract.md#forms). */

import type { ExchangeInput } from '../core/exchange-input.ts'
import type { JsonSchema, Schema } from '../core/schema.ts'
import { jsonIn } from '../json/json.ts'
import { CALL_BOUNDS, Count } from '../json/shape.ts'
import type { Form, Upload } from '../lib/body.ts'
import { errors } from '../lib/error.ts'
import { measure } from './inner-json.ts'

/** Maximum characters of all form fields that are JSON objects. Checking more would take too long. */
const MAX_JSON_CHARACTERS = 4 * 1024 * 1024

/** A form in two parts: a JSON body, and files. */
interface FormBody {
  /** Not validated: a text that its schema cannot convert stays a text, which the validator rejects. */
  readonly fields: Record<string, unknown>
  /** Files by field name, without `[]`. */
  readonly files: ReadonlyMap<string, readonly Upload[]>
}

/**
 * Official clients write lists as repeated `a[]`, objects as `a[b]` or as JSON, and everything else as text. Throws 400
 * `invalid_form_data` for a repeated scalar, for a field that is an object and also a list or a value, and for too much
 * JSON; it counts as that of a body.
 */
export function formBody(form: Form, { json }: Schema<unknown>, input?: ExchangeInput): FormBody {
  const fields: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  const count = new Count()
  const read = objects(count)
  for (const [name, texts] of form.texts) {
    const [, field = name, key] = /^([^[\]]+)\[([^[\]]*)\]$/.exec(name) ?? []
    const schema = propertyOf(json, field)
    if (key) addKey(fields, field, key, texts)
    else if (schema && isList(schema)) addItems(fields, field, texts, schema, read)
    else if (key === undefined && texts.length === 1 && !(field in fields))
      fields[field] = typed(texts[0]!, schema, read)
    else {
      const how = key === undefined || texts.length > 1 ? 'stands twice' : 'comes as a list'
      throw errors.invalidFormData(`"${field}" takes one value, and ${how}`)
    }
  }
  input?.holds(count)
  const files = new Map<string, Upload[]>()
  for (const [name, uploads] of form.files) {
    const field = name.replace(/\[\]$/, '')
    files.set(field, [...(files.get(field) ?? []), ...uploads])
  }
  return { fields: { ...fields }, files }
}

function addKey(fields: Record<string, unknown>, field: string, key: string, texts: readonly string[]): void {
  const members = (fields[field] ?? {}) as Record<string, unknown>
  if (Array.isArray(members)) throw mixed(field)
  if (typeof members !== 'object' || Object.hasOwn(members, key) || texts.length > 1) {
    throw errors.invalidFormData(`"${field}[${key}]" takes one value, but occurs twice`)
  }
  // Schemas of members are not consulted: their notation identifies numbers and booleans.
  Object.defineProperty(members, key, { value: plain(texts[0]!), enumerable: true })
  fields[field] = members
}

function addItems(
  fields: Record<string, unknown>,
  field: string,
  texts: readonly string[],
  schema: JsonSchema,
  read: ReadObject,
): void {
  const items = (schema.items ?? {}) as JsonSchema
  const list = fields[field] ?? []
  if (!Array.isArray(list)) throw mixed(field)
  for (const text of texts) list.push(typed(text, items, read))
  fields[field] = list
}

const mixed = (field: string) => errors.invalidFormData(`"${field}" is sent both as a list and as an object`)

/** The schema of a field; undefined for an unknown one. */
function propertyOf(schema: JsonSchema, name: string): JsonSchema | undefined {
  const properties = schema.properties as Record<string, JsonSchema> | undefined
  return properties && Object.hasOwn(properties, name) ? properties[name] : undefined
}

/** For a union, the types of all members. */
function typesOf(schema: JsonSchema): unknown[] {
  const { type, anyOf } = schema
  if (Array.isArray(anyOf)) return anyOf.flatMap(member => typesOf(member as JsonSchema))
  return Array.isArray(type) ? type : [type]
}

const isList = (schema: JsonSchema): boolean => typesOf(schema).includes('array')

function typed(text: string, schema: JsonSchema | undefined, read: ReadObject): unknown {
  const types = schema ? typesOf(schema) : []
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  if ((types.includes('number') || types.includes('integer')) && isNumber(text)) return Number(text)
  if (types.includes('object') && text.startsWith('{')) return read(text)
  return text
}

const isNumber = (text: string): boolean => /^-?\d{1,15}(?:\.\d{1,15})?$/.test(text)

const plain = (text: string): unknown =>
  text === 'true' || text === 'false' ? text === 'true' : isNumber(text) ? Number(text) : text

type ReadObject = (text: string) => unknown

/** Reads the objects of one form. A text that is not JSON stays a text: the validator explains what is required. */
function objects(count: Count): ReadObject {
  let characters = 0
  return text => {
    characters += text.length
    if (characters > MAX_JSON_CHARACTERS)
      throw errors.invalidFormData(`its JSON has more than ${MAX_JSON_CHARACTERS} characters`)
    measure(text, CALL_BOUNDS, 1, count)
    return jsonIn(text) ?? text
  }
}
