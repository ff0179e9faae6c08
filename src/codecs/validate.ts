/** Compiles a request schema once, and explains issues in a body for clients. */

import type { PresetFields } from '../core/codec.ts'
import type { JsonSchema, Schema } from '../core/schema.ts'
import { isObject, type Json } from '../json/json.ts'
import { errorBody, errors } from '../lib/error.ts'
import { type Check, compile, type Failure } from '../validation/compile.ts'

const MAX_SHOWN_NAME_CHARACTERS = 100

/** An invalid value and its place; an empty path is the whole value. */
interface Issue {
  readonly path: string
  readonly message: string
}

/** Checks a body, and returns it as `T`. Null members that may only be absent are removed from it. */
export interface Validator<T> {
  /** Throws a 400 `invalid_parameters` whose `param` is the path of the first issue. */
  (body: unknown): T
  /** The issue as a value, for codecs with their own error form; undefined without one. */
  issue(body: unknown): Issue | undefined
  /** The schema that is checked, for what describes requests. */
  readonly json: JsonSchema
  /** Reads some members of a body, without the others that it requires. */
  readonly partial: PresetFields
  /** Compiles the schema ahead of the first call. */
  prepare(): void
}

/** Compiles on the first call, or in `prepare`. */
export function validator<T>(schema: Schema<T>): Validator<T> {
  let check: Check | undefined
  const prepare = () => {
    check ??= compile(schema.json)
    return check
  }
  const issue = (body: unknown) => {
    const check = prepare()
    if (check(body)) return undefined
    // Few clients write nulls where the schema has none, so only their bodies are walked.
    return dropNulls(body, schema.json) && check(body) ? undefined : explain(check.errors ?? [])
  }
  const validate = (body: unknown) => {
    const found = issue(body)
    if (!found) return body as T
    const { path, message } = found
    throw errors.invalidParameters(path ? `${path}: ${message}` : `The request body ${message}`, path || null)
  }
  const names = Object.keys(schema.json.properties ?? {})
  const read = (fields: Readonly<Json>) => {
    const known = Object.entries(fields).filter(([name]) => names.includes(name))
    const given = Object.fromEntries(known.filter(([, value]) => value !== null))
    const check = compile({ ...schema.json, required: [] })
    if (check(given)) return Object.fromEntries(known)
    const { path, message } = explain(check.errors ?? [])
    throw errors.invalidField(path, message)
  }
  const partial = { names, read }
  return Object.assign(validate, { issue, json: schema.json, partial, prepare: () => void prepare() })
}

/** Returns the members of a codec that its validator has, with errors in OpenAI's form. */
export const checkedBy = <T>({ partial: preset, json: requestSchema, prepare }: Validator<T>) => ({
  preset,
  error: errorBody,
  requestSchema,
  prepare,
})

/** Explains the deepest failure: in a union, the best fitting member fails last. */
function explain(failures: Failure[]): Issue {
  // A missing, discriminating or unknown property is one level below its object.
  const depth = ({ instancePath, keyword }: Failure) =>
    instancePath.split('/').length + Number(['required', 'discriminator', 'additionalProperties'].includes(keyword))
  const deepest = Math.max(...failures.map(depth))
  const own = failures.filter(
    issue => depth(issue) === deepest && issue.keyword !== 'anyOf' && issue.keyword !== 'oneOf',
  )
  const issue = own.find(({ keyword }) => keyword !== 'type') ?? own[0] ?? failures[0]!
  let path = pathOf(issue.instancePath)
  if (issue.keyword === 'required') path += `${path && '.'}${issue.params.missingProperty}`
  if (issue.keyword === 'discriminator') path += `${path && '.'}${issue.params.tag}`
  if (issue.keyword === 'additionalProperties') {
    path += `${path && '.'}${String(issue.params.additionalProperty).slice(0, MAX_SHOWN_NAME_CHARACTERS)}`
  }
  return { path, message: describe(issue, own) }
}

function describe(issue: Failure, all: Failure[]): string {
  switch (issue.keyword) {
    case 'required':
      return 'is required'
    case 'additionalProperties':
      return 'is unknown; leave it out'
    case 'type': {
      const types = new Set(
        all.filter(({ keyword }) => keyword === 'type').flatMap(({ params }) => params.type as string),
      )
      return `must be ${[...types].join(' or ')}`
    }
    case 'enum':
      return `must be one of ${(issue.params.allowedValues as unknown[]).map(value => JSON.stringify(value)).join(', ')}`
    case 'discriminator':
      return `must be one of ${tags(issue).join(', ')}`
    default: {
      const form = String(issue.parentSchema?.description)
      return issue.keyword === 'pattern' && /^an? /.test(form) ? `must be ${form}` : (issue.message ?? 'is invalid')
    }
  }
}

/** Values of `type` named by the members of a tagged union. */
function tags(issue: Failure): string[] {
  const members = (issue.parentSchema as { oneOf?: { properties: { type: { enum: string[] } } }[] }).oneOf ?? []
  return members.flatMap(member => member.properties.type.enum).map(tag => `"${tag}"`)
}

/** `/messages/0/content` → `messages[0].content`. */
const pathOf = (pointer: string): string =>
  pointer
    .slice(1)
    .split('/')
    .map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : `${path}${path && '.'}${part}`), '')

/**
 * Treats null as absent, since many clients write all members of a form. Removes members of `value` IN PLACE that are
 * null, that the schema declares, and that may be absent but not null. A tool, a call or a choice without `type` that has
 * a `function` becomes one of a function. Returns whether it changed anything.
 */
function dropNulls(value: unknown, schema: JsonSchema): boolean {
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
