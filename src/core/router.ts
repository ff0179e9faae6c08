/** Finds what is served at a path: literal paths by one lookup, templates (RFC 6570) in the order in which they stand. */

/** By the names of a template, percent-decoded. */
export type Params = Readonly<Record<string, string>>

export interface Match<T> {
  readonly value: T
  readonly params: Params
}

/** By method. Made ahead: the matches of a literal path are the same for every request. */
type Matches<T> = Map<string, Match<T>>

interface Template<T> {
  readonly path: string
  readonly pattern: RegExp
  readonly matches: Matches<T>
}

const NO_PARAMS: Params = Object.freeze({})
const EXPRESSION = /\{(\+?)([A-Za-z_]\w*)\}/g

/** `{id}` stands for one segment that is not empty, `{+id}` for one or more, slashes included. */
export class Router<T> {
  readonly #literal = new Map<string, Matches<T>>()
  readonly #templates: Template<T>[] = []

  /** Throws an Error where something else is at this method and path. A GET answers HEAD too, as RFC 9110 wants it. */
  add(method: string, path: string, value: T): void {
    const matches = this.#matchesAt(path)
    const match = { value, params: NO_PARAMS }
    if (matches.has(method)) throw new Error(`two endpoints are at ${method} ${path}`)
    matches.set(method, match)
    if (method === 'GET' && !matches.has('HEAD')) matches.set('HEAD', match)
  }

  /** What is served there, the methods that the path takes, or undefined for a path that nothing is at. */
  match(method: string, path: string): Match<T> | { readonly allow: string[] } | undefined {
    const literal = this.#literal.get(path)
    if (literal) return literal.get(method) ?? { allow: [...literal.keys()].sort() }
    const allow = new Set<string>()
    for (const { pattern, matches } of this.#templates) {
      const found = pattern.exec(path)
      const params = found?.groups && decoded(found.groups)
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
    if (isTemplate) this.#templates.push({ path, pattern: patternOf(path), matches })
    else this.#literal.set(path, matches)
    return matches
  }
}

function patternOf(path: string): RegExp {
  let pattern = ''
  let at = 0
  for (const { 0: whole, 1: many, 2: name, index } of path.matchAll(EXPRESSION)) {
    pattern += `${escaped(path.slice(at, index))}(?<${name}>${many ? '.+' : '[^/]+'})`
    at = index + whole.length
  }
  return new RegExp(`^${pattern}${escaped(path.slice(at))}$`)
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** Undefined for what is not percent-encoded UTF-8. */
function decoded(groups: Readonly<Record<string, string>>): Params | undefined {
  try {
    return Object.fromEntries(Object.entries(groups).map(([name, text]) => [name, decodeURIComponent(text)]))
  } catch {
    return undefined
  }
}
