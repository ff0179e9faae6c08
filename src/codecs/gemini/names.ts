/** Google's clients may write names in camelCase or snake_case, and a list of one without brackets. */
import { isObject, type Json } from '../../core/json.ts'

/** Names chosen by callers, or passed on unchanged. */
const OPAQUE: ReadonlySet<string> = new Set([
  'args',
  'response',
  'parameters',
  'parametersJsonSchema',
  'responseSchema',
  'responseJsonSchema',
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

/** Characters and words of a name; what has more is no field of this wire. */
const MAX_FIELD = 64
const MAX_WORDS = 12

const isSnakeCase = (name: string): boolean =>
  name.length <= MAX_FIELD && name.includes('_') && name.split('_', MAX_WORDS + 1).length <= MAX_WORDS

const camelCase = (name: string): string => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())

/** The value with camelCase names. Shares unchanged parts; of a name in both forms the camelCase one counts. */
export function normalized(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(normalized)
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  if (!isObject(value)) return value
  let isSame = true
  const entries: [string, unknown][] = []
  for (const [written, member] of Object.entries(value)) {
    const name = isSnakeCase(written) ? camelCase(written) : written
    if (name !== written && Object.hasOwn(value, name)) {
      isSame = false
      continue
    }
    const listed = LISTS.has(name) && isObject(member) ? [member] : member
    const inner = OPAQUE.has(name) ? listed : normalized(listed)
    if (name !== written || inner !== member) isSame = false
    entries.push([name, inner])
  }
  return isSame ? value : (Object.fromEntries(entries) as Json)
}
