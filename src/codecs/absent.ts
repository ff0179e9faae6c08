/** Treats `null` as absent in a request, as its schema allows, since many clients write all members of a form. */

import type { JsonSchema } from '../core/schema.ts'
import { isObject } from '../json/json.ts'

/**
 * Removes members of `value` IN PLACE that are null, that the schema declares, and that may be absent but not null.
 * A tool, a call or a choice without `type` that has a `function` becomes one of a function. Returns whether it changed
 * anything.
 */
export function dropNulls(value: unknown, schema: JsonSchema): boolean {
  const { anyOf, oneOf, items, properties } = schema
  let changed = false
  if (Array.isArray(value)) {
    if (isObject(items)) for (const entry of value) changed = dropNulls(entry, items) || changed
  } else if (isObject(value)) {
    if (Array.isArray(oneOf)) changed = inUnion(value, oneOf as JsonSchema[])
    if (isObject(properties)) {
      changed = inObject(value, properties as Record<string, JsonSchema>, schema.required) || changed
    }
  }
  if (Array.isArray(anyOf)) for (const member of anyOf as JsonSchema[]) changed = dropNulls(value, member) || changed
  return changed
}

function inObject(
  value: Record<string, unknown>,
  properties: Readonly<Record<string, JsonSchema>>,
  required: unknown,
): boolean {
  let changed = false
  for (const name of Object.keys(value)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (schema === undefined) continue
    if (value[name] !== null) changed = dropNulls(value[name], schema) || changed
    else if (!takesNull(schema) && !(Array.isArray(required) && required.includes(name))) {
      changed = delete value[name]
    }
  }
  return changed
}

function inUnion(value: Record<string, unknown>, members: readonly JsonSchema[]): boolean {
  const memberOf = (type: unknown) => members.find(member => tagsOf(member).includes(type))
  const isFunction = value.type == null && isObject(value.function) && memberOf('function') !== undefined
  if (isFunction) value.type = 'function'
  const member = memberOf(value.type)
  return (member !== undefined && dropNulls(value, member)) || isFunction
}

const tagsOf = ({ properties }: JsonSchema): readonly unknown[] =>
  (properties as { type: { enum: unknown[] } } | undefined)?.type.enum ?? []

/** Whether null is valid; a schema without rules takes any value. */
function takesNull({ type, anyOf, oneOf }: JsonSchema): boolean {
  if (Array.isArray(anyOf)) return (anyOf as JsonSchema[]).some(takesNull)
  if (type === undefined) return oneOf === undefined
  return Array.isArray(type) ? type.includes('null') : type === 'null'
}
