/** How a provider may spell a credential that it repeats. */
import { type Form, RUN } from './needles.ts'

/**
 * Code units of all forms of one secret together: every encoding of an ordinary one of 1,500 characters, and base64 of one
 * of 4,096. Their places fit in 16 bits.
 */
const MAX_UNITS = 40 * 1024
/** Longest common prefix of credentials of one kind. */
const LONGEST_PREFIX = 'sk-ant-api03-'.length

const upper = (code: number, digits: number) => code.toString(16).toUpperCase().padStart(digits, '0')
const lower = (code: number, digits: number) => code.toString(16).padStart(digits, '0')
const HTML_NAMES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const JSON_ESCAPES: Readonly<Record<string, string>> = { '"': '\\"', '\\': '\\\\', '/': '\\/' }

/** Encodings of a character other than letters, digits, `-`, `_`, `.` and `~`. */
const ESCAPES: readonly ((char: string, code: number) => string)[] = [
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

/** Characters at the beginning of a secret that are common to many of its kind. */
function prefixOf(secret: string): number {
  // Words only, so that a part of a UUID is not taken for a prefix.
  const words = /^(?=.{24})(?:[a-z]{1,6}(?:\d\d)?[-_]){1,3}/i.exec(secret)?.[0].length ?? 0
  return Math.min(words, LONGEST_PREFIX)
}

function base64Of(secret: string, prefix = 0): Form[] {
  const skip = Math.ceil((prefix * 4) / 3)
  // Three bytes become four characters, so the result depends on how many bytes precede the credential.
  return [0, 1, 2].flatMap(before => {
    const shifted = '\0'.repeat(before) + secret
    const bytes = Buffer.from(shifted)
    // The characters that the credential alone determines.
    const text = bytes.toString('base64').slice([0, 2, 3][before], Math.floor((bytes.length * 8) / 6))
    return [
      { text, skip },
      { text: text.replaceAll('+', '-').replaceAll('/', '_'), skip },
    ]
  })
}

const SPECIAL = /[^\w.~-]/
const SPECIALS = /[^\w.~-]/g

/** What each encoding makes of ASCII, by code. */
const ASCII = ESCAPES.map(escaped => Array.from({ length: 128 }, (_, code) => escaped(String.fromCharCode(code), code)))

function escapedOf(plain: string, skip = 0): Form[] {
  if (!SPECIAL.test(plain)) return []
  const texts = ESCAPES.map((escaped, at) => {
    const ascii = ASCII[at]!
    return plain.replace(SPECIALS, char => ascii[char.charCodeAt(0)] ?? escaped(char, char.charCodeAt(0)))
  })
  return texts.filter(text => text !== plain).map(text => ({ text, skip }))
}

/** Every spelling of a short secret. */
export const spellingsOf = (secret: string): string[] => [
  ...new Set([secret, ...base64Of(secret).map(({ text }) => text), ...escapedOf(secret).map(({ text }) => text)]),
]

/**
 * The forms of all parts of a secret in which a run can be. Together they stay within `MAX_UNITS`: plain text goes first,
 * then base64, and of escaped spellings that do not fit the beginnings are kept.
 */
export function formsOf(parts: readonly string[]): Form[] {
  const forms = new Map<string, number>()
  let room = MAX_UNITS
  const add = (made: readonly Form[]) => {
    const fresh = new Map<string, number>()
    for (const { text, skip } of made) if (text.length >= RUN && !forms.has(text)) fresh.set(text, skip)
    let units = 0
    for (const text of fresh.keys()) units += text.length + 1
    const share = Math.min(1, room / units)
    for (const [text, skip] of fresh) {
      const kept = share === 1 ? text : text.slice(0, Math.max(0, Math.floor((text.length + 1) * share) - 1))
      if (kept.length < RUN) continue
      forms.set(kept, skip)
      room -= kept.length + 1
    }
  }
  const distinct = [...new Set(parts)].map(text => ({ text, skip: prefixOf(text) }))
  add(distinct)
  for (const { text, skip } of distinct) if (room >= RUN) add(base64Of(text, skip))
  // Each spelling of a character takes one unit at least.
  for (const { text, skip } of distinct) add(escapedOf(text.slice(0, room / ESCAPES.length), skip))
  return [...forms].map(([text, skip]) => ({ text, skip }))
}
