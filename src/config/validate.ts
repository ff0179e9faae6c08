/** Validates values against schemas, with messages for operators. */

import type { JsonSchema, Schema } from '../core/schema.ts'
import { nearest, unknownName } from '../lib/nearest.ts'
import { compile, type Failure } from '../validation/compile.ts'
import { examples, type Unit } from '../validation/units.ts'
import { type Path, samePath } from './source.ts'

/** An invalid value within a validated whole. */
interface Issue {
  readonly path: Path
  /** Whether the issue concerns the value at `path` or its key. */
  readonly at: 'key' | 'value'
  readonly message: string
}

/**
 * `value` as its schema types it, with defaults filled in and units turned into numbers IN PLACE; or the first
 * issue. Messages do not repeat values at `hidden` paths.
 */
export function check<T>(
  schema: Schema<T>,
  value: unknown,
  hidden: readonly Path[] = [],
): { readonly value: T } | { readonly issue: Issue } {
  const fits = compile(schema.json)
  if (fits(value)) return { value: value as T }
  return { issue: explain(mostSpecific(fits.errors ?? []), hidden) }
}

/** Returns the deepest of a union's failures, or the union's own, which is the last. */
function mostSpecific(errors: readonly Failure[]): Failure {
  const depth = ({ instancePath, keyword }: Failure) =>
    2 * instancePath.split('/').length + (keyword === 'type' || keyword === 'anyOf' ? 0 : 1)
  return errors.reduce((best, error) => (depth(error) >= depth(best) ? error : best))
}

function explain(error: Failure, hidden: readonly Path[]): Issue {
  const path = pathOf(error.instancePath)
  const about = (message: string): Issue => ({ path, at: 'value', message })
  const { data, params, parentSchema: rule = {} } = error
  const isPlace = /\/(?:auth|headers|secrets?|client_secret)(?:\/\d+)*$/.test(error.instancePath)
  const secret = isPlace || hidden.some(other => samePath(other, path))
  switch (error.keyword) {
    case 'additionalProperties':
      return unknownKey(path, params.additionalProperty, Object.keys(rule.properties ?? {}))
    case 'required': {
      const missing: string = params.missingProperty
      const known = Object.keys(rule.properties ?? {})
      const meant = Object.keys(data as object).find(key => !known.includes(key) && nearest(key, [missing]))
      return meant === undefined ? about(`missing key "${missing}"`) : unknownKey(path, meant, known)
    }
    case 'enum':
      if (typeof data === 'string' && !secret) return about(unknownName('value', data, rule.enum))
  }
  return about(`expected ${expectation(error, rule)}, got ${secret && data !== '' ? 'another value' : show(data)}`)
}

const unknownKey = (path: Path, key: string, known: string[]): Issue => ({
  path: [...path, key],
  at: 'key',
  message: unknownName('key', key, known),
})

/** Says what would be valid: the schema's own `description` when it has one. */
function expectation({ keyword, params, message }: Failure, rule: JsonSchema): string {
  if (typeof rule.description === 'string') return rule.description
  if (Array.isArray(rule.enum)) return `one of ${rule.enum.map(value => JSON.stringify(value)).join(', ')}`
  switch (keyword) {
    case 'unit':
      return examples[rule.unit as Unit]
    case 'type':
      return [params.type].flat().map(withArticle).join(' or ')
    case 'anyOf':
      return (rule.anyOf as JsonSchema[]).map(member => withArticle(String(member.type ?? member.unit))).join(' or ')
    case 'minimum':
      return `a number of at least ${params.limit}`
    case 'maximum':
      return `a number of at most ${params.limit}`
    case 'minLength':
      return params.limit === 1 ? 'a string that is not empty' : `at least ${params.limit} characters`
    case 'minItems':
      return `at least ${params.limit} ${params.limit === 1 ? 'entry' : 'entries'}`
    case 'maxLength':
      return `at most ${params.limit} characters`
    case 'maxItems':
    case 'maxProperties':
      return `at most ${params.limit} entries`
    case 'pattern':
      return `a string that matches ${params.pattern}`
    default:
      return message?.replace(/^must (?:be )?/, '') ?? 'another value'
  }
}

const words: Readonly<Record<string, string>> = {
  object: 'a mapping',
  array: 'a list',
  boolean: 'true or false',
  null: 'nothing',
  integer: 'an integer',
}
const withArticle = (type: string): string => words[type] ?? `a ${type}`

/** A value, shortened for a message. */
function show(value: unknown): string {
  if (Array.isArray(value)) return value.length > 0 ? `a list of ${value.length}` : 'an empty list'
  if (typeof value === 'object' && value !== null) return 'a mapping'
  if (value === null) return 'nothing'
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

const pathOf = (pointer: string): Path =>
  pointer
    .split('/')
    .slice(1)
    .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'))
