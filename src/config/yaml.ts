/** YAML text → plain values: one document, no ambiguity, references expanded, every error with its position. */
import { isAlias, isMap, isNode, isScalar, isSeq, type Node, type Scalar, type YAMLError, type YAMLMap } from 'yaml'
import { expand, hasUnread, type References } from './reference.ts'
import { type Path, parseYaml, type Source, samePath } from './source.ts'

const MAX_DEPTH = 64
/** Limit of followed aliases; nested ones count each time, since an alias bomb multiplies them. */
const MAX_ALIASES = 100

/** Bounds of a file as JSON, with its aliases expanded. */
export interface Bounds {
  readonly characters: number
  /** Lists and mappings count, and each of what they hold. */
  readonly values: number
}

/** The expanded references and their text. */
export interface Expanded {
  readonly path: Path
  readonly text: string
}

/** The values of a file, and the references that were expanded in them. */
interface YamlValue {
  readonly value: unknown
  readonly expanded: readonly Expanded[]
}

/**
 * The values of a file, `plain`, with references expanded. `optional` are the paths where a variable may be unset; it
 * expands to an empty text there, as does a secret that was not read. Throws a ConfigError.
 */
export function expandReferences(
  plain: unknown,
  source: Source,
  references: References,
  optional: readonly Path[] = [],
): YamlValue {
  const expanded: Expanded[] = []
  const expandAt = (text: string, path: Path): string => {
    expanded.push({ path, text })
    const isOptional = optional.some(at => samePath(path, at))
    if (isOptional && hasUnread(text, references)) return ''
    return expand(text, references, (why, unset) => {
      if (unset && isOptional) return ''
      throw source.error(why, path)
    })
  }
  const value = references.size > 0 || source.text.includes('${') ? expandAll(plain, [], expandAt) : plain
  return { value, expanded }
}

/** The plain values of a file, references unresolved. Throws a ConfigError, also beyond `bounds`. */
export function parseYamlFile(source: Source, bounds?: Bounds): unknown {
  const document = parseYaml(source.text)
  const fault = document.errors[0] ?? document.warnings[0]
  if (fault) throw source.errorAt(fault.pos[0], describeIssue(fault, source.text))
  const { version } = document.directives.yaml
  if (version !== '1.2') throw source.errorAt(0, `YAML ${version} is not supported; remove the %YAML line`)
  if (document.contents === null) throw source.errorAt(0, 'the file is empty')
  return new Reader(source, bounds).value(document.contents)
}

/** In place: a large file has many values. `path` is one list, reused during the walk. */
function expandAll(value: unknown, path: (string | number)[], expandAt: (text: string, path: Path) => string): unknown {
  if (typeof value === 'string') return value.includes('${') ? expandAt(value, [...path]) : value
  if (typeof value !== 'object' || value === null) return value
  const holder = value as Record<string | number, unknown>
  for (const step of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    path.push(step)
    holder[step] = expandAll(holder[step], path, expandAt)
    path.pop()
  }
  return value
}

function describeIssue({ code, message, pos }: YAMLError, text: string): string {
  switch (code) {
    case 'MULTIPLE_DOCS':
      return 'expected one document in a file; remove this "---"'
    case 'NON_STRING_KEY':
      return 'expected a name as key'
    case 'RESOURCE_EXHAUSTION':
      return `nests deeper than ${MAX_DEPTH} levels`
    case 'TAB_AS_INDENT':
      return 'tabs are not allowed as indentation; use spaces'
    case 'TAG_RESOLVE_FAILED':
      return 'tags are not supported; remove the tag'
    default:
      return text[pos[0] - 1] === '$' ? `a reference inside braces needs quotes: "\${NAME}"` : message
  }
}

class Reader {
  readonly #source: Source
  /** Anchors by name in order of the walk: an alias refers to the last one above it. */
  readonly #anchors = new Map<string, Node>()
  readonly #bounds: Bounds | undefined
  #aliases = 0
  #values = 0
  /** Characters of the JSON. */
  #characters = 0

  constructor(source: Source, bounds: Bounds | undefined) {
    this.#source = source
    this.#bounds = bounds
  }

  value(node: unknown, depth = 0): unknown {
    if (depth > MAX_DEPTH) throw this.#error(node, `nests deeper than ${MAX_DEPTH} levels`)
    if (isNode(node) && !isAlias(node) && node.anchor) this.#anchors.set(node.anchor, node)
    if (!isAlias(node) && this.#bounds) this.#count(node, this.#bounds)
    if (isScalar(node)) return this.#scalar(node)
    if (isMap(node)) return this.#map(node, depth)
    if (isSeq(node)) return node.items.map(item => this.value(item, depth + 1))
    if (!isAlias(node)) return null
    if (++this.#aliases > MAX_ALIASES) throw this.#error(node, `more than ${MAX_ALIASES} aliases; write the values out`)
    const target = this.#anchors.get(node.source)
    if (!target) throw this.#error(node, `unknown anchor "${node.source}"; define it above with "&${node.source}"`)
    return this.value(target, depth)
  }

  /** A value of lists and mappings counts by itself when it is read. */
  #count(node: unknown, { characters, values }: Bounds): void {
    this.#characters += ownLength(node)
    this.#values++
    const beyond =
      this.#values > values
        ? `${values} values`
        : this.#characters > characters
          ? `${characters} characters of JSON`
          : undefined
    if (beyond) throw this.#error(node, `expected at most ${beyond}, with what aliases stand for`)
  }

  #map(node: YAMLMap, depth: number): Record<string, unknown> {
    const value: Record<string, unknown> = {}
    for (const pair of node.items) {
      const key = isScalar(pair.key) ? String(pair.key.value) : ''
      if (key === '__proto__') throw this.#error(pair.key, 'the key "__proto__" is not allowed')
      if (Object.hasOwn(value, key)) throw this.#error(pair.key, `the key "${key}" occurs twice; keep one`)
      value[key] = this.value(pair.value, depth + 1)
    }
    return value
  }

  #scalar(node: Scalar): unknown {
    const { value, source } = node
    if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value
    if (typeof value !== 'number' || !Number.isFinite(value))
      throw this.#error(node, `expected a number, got ${source}`)
    if (/^[-+]?0\d/.test(source ?? '')) {
      throw this.#error(node, `${source} can be read as octal or decimal; write ${value}, or "${source}" in quotes`)
    }
    return value
  }

  #error(node: unknown, message: string): Error {
    return this.#source.errorAt((node as Node | null)?.range?.[0] ?? 0, message)
  }
}

/** Characters of a node as JSON, without the values in it. */
function ownLength(node: unknown): number {
  if (isScalar(node)) return JSON.stringify(node.value)?.length ?? 0
  if (!isMap(node) && !isSeq(node)) return 'null'.length
  // Brackets and commas.
  let length = Math.max(2, node.items.length + 1)
  if (isMap(node)) for (const { key } of node.items) length += JSON.stringify(isScalar(key) ? key.value : '').length + 1
  return length
}
