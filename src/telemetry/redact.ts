/** Takes secrets out of what is logged: by the name of a field, and by the look of a value. */

const MASK = '***'
const MAX_DEPTH = 6

/** Compared without case, `-` and `_`, so that `x-api-key`, `apiKey` and `API_KEY` are one name. */
const SECRET_NAME = /^(?:(?:proxy)?authorization|(?:set)?cookie|key|.*(?:apikey|secret|token|password|privatekey))$/

/** What a credential looks like wherever it stands: our own keys, common provider keys, headers, URLs. */
const SECRET_VALUES: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer|Basic)\s+[^\s"',;]+/gi, `$1 ${MASK}`],
  [/\b(sk-|mgw_|ek_)[A-Za-z0-9_-]{6,}/g, `$1${MASK}`],
  [/\b(AIza|AKIA|ASIA)[A-Za-z0-9_-]{12,}/g, `$1${MASK}`],
  [/([?&](?:key|api[-_]?key|token|access_token|secret|sig)=)[^&\s"'#]+/gi, `$1${MASK}`],
  [/\b(x-api-key["']?\s*[:=]\s*["']?)[^\s"',;]+/gi, `$1${MASK}`],
  [/(:\/\/)[^\s/@:]+:[^\s/@]+@/g, `$1${MASK}@`],
]

/** `text` with everything masked that looks like a credential. */
export function redactText(text: string): string {
  let clean = text
  for (const [pattern, replacement] of SECRET_VALUES) clean = clean.replace(pattern, replacement)
  return clean
}

/**
 * A copy of `value` that is safe to log: secret fields and values masked, errors as plain objects with their causes,
 * bigints as text, nothing deeper than six levels.
 */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value === 'bigint') return value.toString()
  if (typeof value !== 'object' || value === null) return value
  if (depth >= MAX_DEPTH) return '[deeper]'
  if (value instanceof Error) return redactError(value, depth)
  if (value instanceof Date) return value
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (Array.isArray(value)) return value.map(item => redact(item, depth + 1))
  const clean: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(value)) {
    const secret = field !== undefined && field !== null && SECRET_NAME.test(name.toLowerCase().replace(/[-_]/g, ''))
    clean[name] = secret ? MASK : redact(field, depth + 1)
  }
  return clean
}

/** Other fields of foreign errors may hold requests, headers and bodies; these tell what went wrong, and where. */
const ERROR_FIELDS = ['code', 'status', 'syscall', 'file', 'line', 'column'] as const

function redactError(error: Error, depth: number): object {
  const clean: Record<string, unknown> = { type: error.name, message: redactText(error.message) }
  for (const name of ERROR_FIELDS) {
    const field: unknown = Reflect.get(error, name)
    if (typeof field === 'string' || typeof field === 'number') clean[name] = redact(field)
  }
  if (error.stack !== undefined) clean.stack = redactText(error.stack)
  if (error.cause !== undefined) clean.cause = redact(error.cause, depth + 1)
  return clean
}
