/** Finds the secrets in a provider's headers and defaults, so that they are never shown. */
import { mapText } from '../secrets/map-text.ts'
import { MASK, type SentSecrets } from '../secrets/mask.ts'
import { isReference, isSecretName } from '../secrets/redact.ts'
import type { ConfigFile } from './file.ts'
import type { ProviderFile } from './schemas/provider.ts'
import type { Path } from './source.ts'

/** Credentials that one manifest may send beside that of `auth`, and their characters in all. */
const MAX_SECRETS = 32
const MAX_SECRET_CHARACTERS = 4096
/** Other values that it may take from references. */
const MAX_VALUES = 64
/** Shorter texts are words. */
const MIN_SECRET_CHARACTERS = 8

/**
 * Secrets are headers whose names say so, and referred values that look like a credential; other values from references
 * are open to answers. Undefined for nothing. Throws a ConfigError for more than can be searched for.
 */
export function sentSecrets({ source, value, referred }: ConfigFile<ProviderFile>): SentSecrets | undefined {
  const secrets = new Set<string>()
  const values = new Set<string>()
  for (const [name, text] of Object.entries(value.headers)) if (isSecretName(name)) secrets.add(text)
  for (const path of referred) {
    const [section, name] = path
    if (section !== 'headers' && (section !== 'quirks' || name !== 'default')) continue
    const text = String(valueAt(value, path))
    const found = credentialIn(text)
    if (found !== undefined) secrets.add(found)
    else if (text.length >= MIN_SECRET_CHARACTERS && !secrets.has(text)) values.add(text)
  }
  if (secrets.size + values.size === 0) return undefined
  let characters = 0
  for (const secret of secrets) characters += secret.length
  if (secrets.size > MAX_SECRETS || characters > MAX_SECRET_CHARACTERS) {
    const most = `${MAX_SECRETS} of ${MAX_SECRET_CHARACTERS} characters in all`
    throw source.error(`expected at most ${most} of headers and defaults that are credentials`, ['headers'])
  }
  if (values.size > MAX_VALUES) {
    throw source.error(`expected at most ${MAX_VALUES} values of headers and defaults from references`, ['headers'])
  }
  const found = { secrets: [...secrets], values: [...values] }
  return Object.freeze({ ...found, key: JSON.stringify(found) })
}

/** A copy of a manifest's headers or defaults in which texts that look like credentials are `***`. */
export const maskSent = <T>(value: T): T =>
  mapText(value, text => (isReference(text) || credentialIn(text) === undefined ? text : MASK))

const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce((holder, step) => (holder as Record<string, unknown> | undefined)?.[String(step)], value)

const SHORTEST_CREDENTIAL = 16
/** A word, a word with a number, a number or a date: what names, versions, regions and hosts are made of. */
const PLAIN = /^(?:[a-z]{0,14}\d{0,4}[a-z]?|\d{1,8}[a-z]{0,2})$/i

/** The one credential that a text is, alone or behind the word of its scheme; undefined for other text. */
function credentialIn(text: string): string | undefined {
  const [first = '', second = first, third] = text.trim().split(/\s+/, 3)
  if (third !== undefined || second.length < SHORTEST_CREDENTIAL || second.includes('://')) return undefined
  const isMixed = /[a-z]/i.test(second) && /\d/.test(second)
  return isMixed && !second.split(/[^a-z0-9]+/i).every(part => PLAIN.test(part)) ? second : undefined
}
