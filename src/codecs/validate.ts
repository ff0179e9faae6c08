/** Compiles a request schema once, and says what is wrong with a body in a client's words. */
import { errors } from '../core/error.ts'
import type { Schema } from '../core/schema.ts'
import { type Check, compile, type Failure } from '../validation/compile.ts'

/** What is wrong with a value, and where in it; an empty path is the value itself. */
export interface Issue {
  readonly path: string
  readonly message: string
}

export interface Validator<T> {
  /** Throws a 400 `invalid_parameters` whose `param` is the path of the first issue. */
  (body: unknown): T
  /** The same issue without throwing, for codecs that report in their own form; undefined when there is none. */
  issue(body: unknown): Issue | undefined
  /** Compiles the schema, which otherwise the first call does. */
  prepare(): void
}

export function validator<T>(schema: Schema<T>): Validator<T> {
  let check: Check | undefined
  const prepare = () => {
    check ??= compile(schema.json)
    return check
  }
  const issue = (body: unknown) => {
    const check = prepare()
    return check(body) ? undefined : explain(check.errors ?? [])
  }
  const validate = (body: unknown) => {
    const found = issue(body)
    if (!found) return body as T
    const { path, message } = found
    throw errors.invalidParameters(path ? `${path}: ${message}` : `The request body ${message}`, path || null)
  }
  return Object.assign(validate, { issue, prepare: () => void prepare() })
}

/** Explains the deepest failure: in a union the member that fits best is the one that fails last. */
function explain(failures: Failure[]): Issue {
  // A property that is missing, or tells members apart, lies one level below what it is missed in.
  const depth = ({ instancePath, keyword }: Failure) =>
    instancePath.split('/').length + Number(keyword === 'required' || keyword === 'discriminator')
  const deepest = Math.max(...failures.map(depth))
  const own = failures.filter(
    issue => depth(issue) === deepest && issue.keyword !== 'anyOf' && issue.keyword !== 'oneOf',
  )
  const issue = own.find(({ keyword }) => keyword !== 'type') ?? own[0] ?? failures[0]!
  let path = pathOf(issue.instancePath)
  if (issue.keyword === 'required') path += `${path && '.'}${issue.params.missingProperty}`
  if (issue.keyword === 'discriminator') path += `${path && '.'}${issue.params.tag}`
  return { path, message: describe(issue, own) }
}

function describe(issue: Failure, all: Failure[]): string {
  switch (issue.keyword) {
    case 'required':
      return 'is required'
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
    default:
      return issue.message ?? 'is invalid'
  }
}

/** The values of `type` that the members of a tagged union name. */
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
