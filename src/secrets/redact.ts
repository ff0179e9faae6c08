/** Removes secrets from what is shown: by the name of a field, by the look of a text, and by equality with known ones. */
import { maskAll, maskOf } from './known.ts'
import { MASK } from './mask.ts'

/** The gateway's own keys, keys of common providers, headers, URLs. */
const LOOKS: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer)\s+[^\s"',;]+/gi, `$1 ${MASK}`],
  [/\b([Bb]asic|BASIC)\s+(?=[^\s"',;]*[A-Z\d=])[^\s"',;]{8,}/g, `$1 ${MASK}`],
  [/\b(?:(?:sk|pk|rk|gsk|xai|mgw|ek|key)[-_]|AIza|AKIA|ASIA)(?:[A-Za-z0-9_\-*]{6,}|\*{3})/g, MASK],
  [/([?&](?:key|api[-_]?key|token|access_token|secret|sig)=)[^&\s"'#]+/gi, `$1${MASK}`],
  [/\b(x-api-key["']?\s*[:=]\s*["']?)[^\s"',;]+/gi, `$1${MASK}`],
  [/(:\/\/)[^\s/@:]*:[^\s/@]+@/g, `$1${MASK}@`],
]

/** Matched in lower case without `-` and `_`, so that `x-api-key`, `apiKey` and `API_KEY` are one name. */
const SECRET_NAME = /^(?:(?:proxy)?authorization|(?:set)?cookie|key|.*(?:apikey|secret|token|password|privatekey))$/
/** Last words of such names, as those of `ocp-apim-subscription-key` and `helicone-auth`. */
const SECRET_WORD = /[-_](?:key|auth|authorization)$/i

/** Whether a field or header of this name holds a secret. A name has no spaces. */
export const isSecretName = (name: string): boolean =>
  !name.includes(' ') && (SECRET_WORD.test(name) || SECRET_NAME.test(name.toLowerCase().replace(/[-_]/g, '')))

/** References to secrets that stand elsewhere, beside what is masked already: no value of a configuration has that form. */
const REFERENCES = /^(?:\$\{(?:exec|vault|aws|gcp):[^${}]*\}|\*{3}|[\s,:])+$/

/** Whether a text is a reference in place of a secret. */
export const isReference = (text: string): boolean => text.includes('${') && REFERENCES.test(text)

/** `text` with everything masked that looks like a credential or is `secret` in any usual encoding. */
export function redactText(text: string, secret = ''): string {
  let clean = maskOf(secret)?.strict(text) ?? text
  for (const [pattern, replacement] of LOOKS) clean = clean.replace(pattern, replacement)
  return clean
}

/** Names of accounts at providers: ARNs, e-mail addresses, projects, organizations, account numbers. */
const ACCOUNTS: readonly (readonly [RegExp, string])[] = [
  [/\barn:[\w-]+:[^\s"'`,;)]+/g, `arn:${MASK}`],
  [/(?<![\w.+-])[\w.+-]{1,64}@[\w.-]{3,100}/g, MASK],
  [/\b((?:projects|organizations|folders|accounts|subscriptions|billingAccounts)\/)[^\s"'`/,;:?)]+/gi, `$1${MASK}`],
  [/\b(project_?(?:number|id)["'`]?\s*[:=]?\s*["'`]?)[\w-]+/gi, `$1${MASK}`],
  [
    /\b((?:project|team|account|organi[sz]ation|workspace|subscription|tenant|customer)(?:[ _-]?id)?[\s"'`:=(]{1,4})(?=[\w-]*\d)[\w-]{6,}/gi,
    `$1${MASK}`,
  ],
  [/\b(?:org|proj|acct|wrkspc|team|cus)[-_](?=[\w-]*\d)[\w-]{6,}/g, MASK],
  [/\b\d{12}\b/g, MASK],
]

/** `text` without the names of the account that a credential belongs to. */
export function redactAccount(text: string): string {
  let clean = text
  for (const [pattern, replacement] of ACCOUNTS) clean = clean.replace(pattern, replacement)
  return clean
}

/** Levels of a value that are logged. */
const MAX_DEPTH = 6
/** Maximum depth of the configuration, which cannot nest deeper. */
const CONFIG_DEPTH = 100

/** Also removes the known secrets, which may have any form. */
export const cleanText = (text: string): string => redactText(maskAll(text))

/**
 * A copy of `value` that is safe to log: secret fields and values masked, errors as plain objects with their causes,
 * bigints as strings, nesting cut at six levels.
 */
export function redactValue(value: unknown, depth = 0, max = MAX_DEPTH): unknown {
  if (typeof value === 'string') return isReference(value) ? value : cleanText(value)
  if (typeof value === 'bigint') return value.toString()
  if (typeof value !== 'object' || value === null) return value
  if (depth >= max) return '[deeper]'
  if (value instanceof Error) return redactError(value, depth)
  if (value instanceof Date) return value
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (Array.isArray(value)) return value.map(item => redactValue(item, depth + 1, max))
  const clean: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(value)) {
    // A number of keys or tokens is none.
    const mayHold = (typeof field === 'string' && !isReference(field)) || typeof field === 'object'
    const holdsSecret = mayHold && Boolean(field) && isSecretName(name)
    clean[name] = holdsSecret ? MASK : redactValue(field, depth + 1, max)
  }
  return clean
}

/** A copy of the configuration that is safe to show. */
export const redactConfig = (value: Record<string, unknown>): Record<string, unknown> =>
  redactValue(value, 0, CONFIG_DEPTH) as Record<string, unknown>

/** Other fields of foreign errors may hold requests, headers and bodies. */
const ERROR_FIELDS = ['code', 'status', 'syscall', 'file', 'line', 'column'] as const

function redactError(error: Error, depth: number): object {
  const clean: Record<string, unknown> = { type: error.name, message: cleanText(error.message) }
  for (const name of ERROR_FIELDS) {
    const field: unknown = Reflect.get(error, name)
    if (typeof field === 'string' || typeof field === 'number') clean[name] = redactValue(field)
  }
  if (error.stack !== undefined) clean.stack = cleanText(error.stack)
  if (error.cause !== undefined) clean.cause = redactValue(error.cause, depth + 1)
  return clean
}
