/** Google's clients may write names in camelCase or snake_case, enums in any case, and a list of one without brackets. */
import { isObject, type Json } from '../../json/json.ts'

/** Names chosen by callers, or passed on unchanged. */
const OPAQUE: ReadonlySet<string> = new Set([
  'args',
  'response',
  'parameters',
  'parametersJsonSchema',
  'responseSchema',
  'responseJsonSchema',
  '_responseJsonSchema',
  'labels',
])
const LISTS: ReadonlySet<string> = new Set([
  'contents',
  'parts',
  'tools',
  'functionDeclarations',
  'stopSequences',
  'allowedFunctionNames',
  'requests',
])

/** Members whose words Google's clients write in upper or lower case. */
const ENUMS: ReadonlySet<string> = new Set([
  ...['mode', 'threshold', 'category', 'mediaResolution', 'level', 'responseModalities', 'thinkingLevel'],
  ...['language', 'outcome', 'behavior', 'scheduling', 'blockingConfidence', 'environment', 'modelSelectionPreference'],
])
const WORD = /^[a-z][a-z_]*$/i

/** Characters and words of a name; what has more is no field of this wire. */
const MAX_FIELD_CHARACTERS = 64
const MAX_WORDS = 12

const isSnakeCase = (name: string): boolean =>
  name.length <= MAX_FIELD_CHARACTERS && name.includes('_', 1) && name.split('_', MAX_WORDS + 1).length <= MAX_WORDS

const camelCase = (name: string): string =>
  name.replace(/(?<=.)_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())

/** The value with camelCase names. Shares unchanged parts; of a name in both forms the camelCase one counts. */
export function normalized(value: unknown): unknown {
  if (Array.isArray(value)) return normalizedList(value)
  return isObject(value) ? normalizedObject(value) : value
}

function memberOf(field: string, value: unknown): unknown {
  if (field === 'role' && typeof value === 'string') return value.toLowerCase()
  return ENUMS.has(field) ? upper(value) : normalized(value)
}

/** Writes the word of an enum, or a list of words, in upper case. Reads anything else as a plain value. */
function upper(value: unknown): unknown {
  if (typeof value === 'string') return WORD.test(value) ? value.toUpperCase() : value
  if (!Array.isArray(value)) return normalized(value)
  const words = value.map(upper)
  return words.every((word, at) => word === value[at]) ? value : words
}

function normalizedList(list: readonly unknown[]): readonly unknown[] {
  let items: unknown[] | undefined
  for (let at = 0; at < list.length; at++) {
    const item = normalized(list[at])
    if (item !== list[at]) items ??= list.slice(0, at)
    items?.push(item)
  }
  return items ?? list
}

function normalizedObject(value: Json): Json {
  let entries: [string, unknown][] | undefined
  const written = Object.keys(value)
  for (let at = 0; at < written.length; at++) {
    const name = written[at]!
    const member = value[name]
    const field = isSnakeCase(name) ? camelCase(name) : name
    const listed = LISTS.has(field) && isObject(member) ? [member] : member
    const inner = OPAQUE.has(field) ? listed : memberOf(field, listed)
    if (field !== name || inner !== member) entries ??= written.slice(0, at).map(before => [before, value[before]])
    // Not where the camelCase form is there, too.
    if (field === name || !Object.hasOwn(value, field)) entries?.push([field, inner])
  }
  return entries ? Object.fromEntries(entries) : value
}
