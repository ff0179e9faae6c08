/** Finds what is served at a path: literal paths by one lookup, templates (RFC 6570) in the order in which they stand. */

/** Parameters by their names in the template, percent-decoded. */
export type Params = Readonly<Record<string, string>>

/** The match of a path, with its parameters. */
export interface Match<T> {
  readonly value: T
  readonly params: Params
}

/** Matches by method. They are made ahead: a literal path has the same match for every request. */
type Matches<T> = Map<string, Match<T>>

interface Template<T> {
  readonly path: string
  readonly read: Reader
  readonly matches: Matches<T>
}

/** The parameters of a path, still encoded; undefined for one that does not fit. */
type Reader = (path: string) => Record<string, string> | undefined

const NO_PARAMS: Params = Object.freeze({})
const SEGMENT = /^\{([A-Za-z_]\w*)\}$/
const REST_SEGMENTS = /^([^{}]*)\{\+([A-Za-z_]\w*)\}([^{}]*)$/

/**
 * `{id}` stands for one whole segment that is not empty, `{+id}` for any text, slashes included; a path with that has no
 * other parameter.
 */
export class Router<T> {
  readonly #literal = new Map<string, Matches<T>>()
  readonly #templates: Template<T>[] = []

  /** Throws an Error for a duplicate method and path. GET also serves HEAD (RFC 9110). */
  add(method: string, path: string, value: T): void {
    const matches = this.#matchesAt(path)
    const match = { value, params: NO_PARAMS }
    if (matches.has(method)) throw new Error(`two endpoints are at ${method} ${path}`)
    matches.set(method, match)
    if (method === 'GET' && !matches.has('HEAD')) matches.set('HEAD', match)
  }

  /** Returns the match, or the methods that the path takes; undefined for an unknown path. */
  match(method: string, path: string): Match<T> | { readonly allow: string[] } | undefined {
    const literal = this.#literal.get(path)
    if (literal) return literal.get(method) ?? { allow: [...literal.keys()].sort() }
    const allow = new Set<string>()
    for (const { read, matches } of this.#templates) {
      const found = read(path)
      const params = found && decoded(found)
      if (!params) continue
      const match = matches.get(method)
      if (match) return { value: match.value, params }
      for (const other of matches.keys()) allow.add(other)
    }
    return allow.size > 0 ? { allow: [...allow].sort() } : undefined
  }

  #matchesAt(path: string): Matches<T> {
    const isTemplate = path.includes('{')
    const known = isTemplate ? this.#templates.find(one => one.path === path)?.matches : this.#literal.get(path)
    if (known) return known
    const matches: Matches<T> = new Map()
    if (isTemplate) this.#templates.push({ path, read: readerOf(path), matches })
    else this.#literal.set(path, matches)
    return matches
  }
}

function readerOf(template: string): Reader {
  const [, before, name, behind] = REST_SEGMENTS.exec(template) ?? []
  if (name === undefined) return segmentsOf(template)
  return path => {
    const end = path.length - behind!.length
    if (end <= before!.length || !path.startsWith(before!) || !path.endsWith(behind!)) return undefined
    return { [name]: path.slice(before!.length, end) }
  }
}

function segmentsOf(template: string): Reader {
  const expected = template.split('/').map(segment => ({ segment, name: SEGMENT.exec(segment)?.[1] }))
  const odd = expected.find(({ segment, name }) => name === undefined && segment.includes('{'))
  if (odd) throw new Error(`${template}: a parameter is a whole segment, or the only one of its path as {+name}`)
  return path => {
    const segments = path.split('/')
    if (segments.length !== expected.length) return undefined
    const params: Record<string, string> = {}
    for (const [index, { segment, name }] of expected.entries()) {
      const part = segments[index]!
      if (name === undefined ? part !== segment : part === '') return undefined
      if (name !== undefined) params[name] = part
    }
    return params
  }
}

/** Undefined for what is not percent-encoded UTF-8. */
function decoded(params: Readonly<Record<string, string>>): Params | undefined {
  try {
    return Object.fromEntries(Object.entries(params).map(([name, text]) => [name, decodeURIComponent(text)]))
  } catch {
    return undefined
  }
}
