/** The options of configuration files, with their types, defaults and purposes. */
import type { JsonSchema } from '../core/schema.ts'

/** Sentences by path, in the sections `gateway`, `filters`, `models` and `provider`. */
export type Purposes = Readonly<Record<string, Readonly<Record<string, string>>>>

/** An option as the reference shows it. */
interface Option {
  readonly path: string
  readonly type: string
  readonly fallback: string
  readonly purpose: string
}

/** Options by section, in the order of the schemas. An option without a purpose has an empty one. */
export function optionsIn(
  schemas: Readonly<Record<string, JsonSchema>>,
  purposes: Purposes,
): Record<string, readonly Option[]> {
  const found: Record<string, Map<string, Option>> = { gateway: new Map(), filters: new Map() }
  eachOption(schemas, (section, path, json) => {
    const shown = shownPath(path)
    if (shown === undefined) return
    found[section] ??= new Map()
    const fallback = json.default === undefined ? '' : `\`${JSON.stringify(json.default)}\``
    const purpose = purposeOf(purposes, section, path) ?? ''
    if (!found[section].has(shown)) found[section].set(shown, { path: shown, type: typeOf(json), fallback, purpose })
  })
  return Object.fromEntries(Object.entries(found).map(([section, options]) => [section, [...options.values()]]))
}

/** The schemas with purposes as descriptions, before what a value looks like. */
export function described(
  schemas: Readonly<Record<string, JsonSchema>>,
  purposes: Purposes,
): Readonly<Record<string, JsonSchema>> {
  const copy = structuredClone(schemas) as Record<string, JsonSchema>
  eachOption(copy, (section, path, json) => {
    const purpose = purposeOf(purposes, section, path)
    const looks = json.description === undefined ? '' : ` Expected: ${json.description}.`
    if (purpose !== undefined) Object.assign(json, { description: purpose + looks })
  })
  return copy
}

/** Offers of listed and of open models have one list of options, and so have prices and their tiers. */
const purposeOf = (purposes: Purposes, section: string, path: string): string | undefined => {
  const of = purposes[section] ?? {}
  const offer = path.replace(/^open\./, 'models[].')
  const price = /\.pricing(?:_tiers\[\])?\.(\w+)$/.exec(path)?.[1]
  return of[path.replace(/^plans\.\w+/, 'plans.*')] ?? of[offer] ?? (price && of[`pricing.${price}`])
}

/** Undefined for options that stand for others: one plan shows all, and one offer. */
function shownPath(path: string): string | undefined {
  if (/^open\.|\.pricing_tiers\[\]\.(?!above)|wires\.|^plans\.(?:pro|max)/.test(path)) return undefined
  return path.replace(/^plans\.lite/, 'plans.*')
}

type Visit = (section: string, path: string, json: JsonSchema) => void

function eachOption(schemas: Readonly<Record<string, JsonSchema>>, visit: Visit): void {
  for (const [section, schema] of Object.entries(schemas)) {
    walk(schema, '', (path, json) => {
      const isOfFilter = /^(?:chains\.\*|endpoints\.[^.]+\.(?!compat))/.test(path)
      if (!isOfFilter) visit(section, path.replace(/^endpoints\.[^.]+/, 'endpoints.*'), json)
    })
    for (const [name, options] of Object.entries((schema.definitions ?? {}) as Record<string, JsonSchema>)) {
      walk(options, name.replace(/^some-/, ''), (path, json) => visit('filters', path, json))
    }
  }
}

/** Visits each member of objects within a schema, but not what it refers to. */
function walk(json: JsonSchema, path: string, visit: (path: string, json: JsonSchema) => void): void {
  const below = (name: string) => (path === '' ? name : `${path}.${name}`)
  for (const [name, member] of Object.entries((json.properties ?? {}) as Record<string, JsonSchema>)) {
    visit(below(name), member)
    walk(member, below(name), visit)
  }
  for (const one of [json.anyOf, json.oneOf, json.allOf].flat()) if (one) walk(one as JsonSchema, path, visit)
  if (isSchema(json.items)) walk(json.items, `${path}[]`, visit)
  if (isSchema(json.additionalProperties)) walk(json.additionalProperties, below('*'), visit)
}

const isSchema = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null

/** The values that an option takes, in words. */
function typeOf(json: JsonSchema): string {
  const { type, description, enum: words, anyOf, items } = json
  if (Array.isArray(words)) return words.map(word => `\`${word}\``).join(', ')
  if (Array.isArray(anyOf)) {
    const types = (anyOf as JsonSchema[]).filter(one => one.pattern !== '\\$\\{').map(typeOf)
    return [...new Set(types)].join(' or ')
  }
  if (typeof description === 'string') return description
  if (type === 'array') return isSchema(items) ? `list: ${typeOf(items)}` : 'list'
  if (type === 'object') return 'section'
  return typeof type === 'string' ? `${type}${range(json)}` : 'any value'
}

const range = ({ minimum, maximum }: JsonSchema): string =>
  minimum === undefined ? '' : maximum === undefined ? ` from ${minimum}` : ` from ${minimum} to ${maximum}`
