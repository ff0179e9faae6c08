/** How a provider may spell a credential that it repeats. */
import type { Form } from './needles.ts'

/** Longest common prefix of credentials of one kind. */
const LONGEST_PREFIX = 'sk-ant-api03-'.length

const upper = (code: number, digits: number) => code.toString(16).toUpperCase().padStart(digits, '0')
const lower = (code: number, digits: number) => code.toString(16).padStart(digits, '0')
const HTML_NAMES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const JSON_ESCAPES: Readonly<Record<string, string>> = { '"': '\\"', '\\': '\\\\', '/': '\\/' }

/** Encodings of a character other than letters, digits, `-`, `_`, `.` and `~`; the first is the plain one. */
const ESCAPES: readonly ((char: string, code: number) => string)[] = [
  char => char,
  // Percent.
  (_, code) => `%${upper(code, 2)}`,
  (_, code) => `%${lower(code, 2)}`,
  (char, code) => (char === '/' ? char : `%${upper(code, 2)}`),
  // JSON.
  char => (char === '/' ? char : (JSON_ESCAPES[char] ?? char)),
  char => JSON_ESCAPES[char] ?? char,
  (_, code) => `\\u${upper(code, 4)}`,
  (_, code) => `\\u${lower(code, 4)}`,
  // HTML.
  char => HTML_NAMES[char] ?? char,
  (char, code) => HTML_NAMES[char] ?? `&#${code};`,
  (_, code) => `&#${code};`,
  (_, code) => `&#x${upper(code, 2)};`,
  (_, code) => `&#x${lower(code, 2)};`,
]

export function formsOf(secret: string): Form[] {
  // Words only, so that a part of a UUID is not taken for a prefix.
  const words = /^(?=.{24})(?:[a-z]{1,6}(?:\d\d)?[-_]){1,3}/i.exec(secret)?.[0].length ?? 0
  const skip = Math.min(words, LONGEST_PREFIX)
  const forms = new Map<string, number>()
  for (const escaped of ESCAPES) {
    forms.set(
      secret.replace(/[^\w.~-]/g, char => escaped(char, char.charCodeAt(0))),
      skip,
    )
  }
  // Three bytes become four characters, so the result depends on how many bytes precede the credential.
  for (const before of [0, 1, 2]) {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)])
    // The characters that the credential alone determines.
    const whole = bytes.toString('base64').slice([0, 2, 3][before], Math.floor((bytes.length * 8) / 6))
    const common = skip === 0 ? 0 : Math.ceil((skip * 4) / 3)
    forms.set(whole, common)
    forms.set(whole.replaceAll('+', '-').replaceAll('/', '_'), common)
  }
  return [...forms].map(([text, skip]) => ({ text, skip }))
}
