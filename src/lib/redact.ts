/** Removes secrets from text: what looks like one, and the credential in use. */
import { MASK, maskOf } from './mask.ts'

/** The gateway's own keys, keys of common providers, headers, URLs. */
const LOOKS: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer)\s+[^\s"',;]+/gi, `$1 ${MASK}`],
  [/\b([Bb]asic|BASIC)\s+(?=[^\s"',;]*[A-Z\d=])[^\s"',;]{8,}/g, `$1 ${MASK}`],
  [/\b(?:(?:sk|pk|rk|gsk|xai|mgw|ek|key)[-_]|AIza|AKIA|ASIA)(?:[A-Za-z0-9_\-*]{6,}|\*{3})/g, MASK],
  [/([?&](?:key|api[-_]?key|token|access_token|secret|sig)=)[^&\s"'#]+/gi, `$1${MASK}`],
  [/\b(x-api-key["']?\s*[:=]\s*["']?)[^\s"',;]+/gi, `$1${MASK}`],
  [/(:\/\/)[^\s/@:]+:[^\s/@]+@/g, `$1${MASK}@`],
]

/** Matched in lower case without `-` and `_`, so that `x-api-key`, `apiKey` and `API_KEY` are one name. */
const SECRET_NAME = /^(?:(?:proxy)?authorization|(?:set)?cookie|key|.*(?:apikey|secret|token|password|privatekey))$/

/** Whether a field or header of this name holds a secret. */
export const isSecretName = (name: string): boolean => SECRET_NAME.test(name.toLowerCase().replace(/[-_]/g, ''))

/** `text` with everything masked that looks like a credential or is a part of `secret` in any usual encoding. */
export function redactText(text: string, secret = ''): string {
  let clean = maskOf(secret)?.strict(text) ?? text
  for (const [pattern, replacement] of LOOKS) clean = clean.replace(pattern, replacement)
  return clean
}
