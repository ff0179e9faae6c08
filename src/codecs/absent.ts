/** Treats `null` as absent in a request, as its schema allows, since many clients write all members of a form. */

import type { JsonSchema } from '../core/schema.ts'
import { isObject } from '../json/json.ts'

/**
 * Removes members of `value` IN PLACE that are null, that the schema declares, and that may be absent but not null.
 * A tool, a call or a choice without `type` that has a `function` becomes one of a function.
 */
export function dropNulls(value: unknown, schema: JsonSchema): void {
  const { anyOf, oneOf, items, properties } = schema
  if (Array.isArray(value)) {
    if (isObject(items)) for (const entry of value) dropNulls(entry, items)
  } else if (isObject(value)) {
    if (Array.isArray(oneOf)) inUnion(value, oneOf as JsonSchema[])
    if (isObject(properties)) inObject(value, properties as Record<string, JsonSchema>, schema.required)
  }
  if (Array.isArray(anyOf)) for (const member of anyOf as JsonSchema[]) dropNulls(value, member)
}

function inObject(
  value: Record<string, unknown>,
  properties: Readonly<Record<string, JsonSchema>>,
  required: unknown,
): void {
  for (const name of Object.keys(value)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (schema === undefined) continue
    if (value[name] !== null) dropNulls(value[name], schema)
    else if (!takesNull(schema) && !(Array.isArray(required) && required.includes(name))) delete value[name]
  }
}

function inUnion(value: Record<string, unknown>, members: readonly JsonSchema[]): void {
  const memberOf = (type: unknown) => members.find(member => tagsOf(member).includes(type))
  if (value.type == null && isObject(value.function) && memberOf('function')) value.type = 'function'
  const member = memberOf(value.type)
  if (member) dropNulls(value, member)
}

const tagsOf = ({ properties }: JsonSchema): readonly unknown[] =>
  (properties as { type: { enum: unknown[] } } | undefined)?.type.enum ?? []

/** Whether null is valid; a schema without rules takes any value. */
function takesNull({ type, anyOf, oneOf }: JsonSchema): boolean {
  if (Array.isArray(anyOf)) return (anyOf as JsonSchema[]).some(takesNull)
  if (type === undefined) return oneOf === undefined
  return Array.isArray(type) ? type.includes('null') : type === 'null'
}
