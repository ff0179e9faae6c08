/**
 * Sealed reasoning of other formats inside thinking blocks. Clients return a thinking block's opaque signature
 * unchanged, so it carries values without a field of their own: base64 of `mgw|<what>|<format>|<place>|<seal>`.
 */
import { wellFormed } from '../../json/json.ts'

/** The format whose signatures are used directly in a thinking block. */
export const NATIVE_FORMAT = 'anthropic-claude-v1'

/** Start of the values made here: `mgw` in base64. Signatures of this wire's provider never begin so. */
const START = 'bWd3'
const PATTERN = /^mgw\|(text|signature|data|call)\|([^|]*)\|([^|]*)\|/

/** The content of a signature that the gateway makes. */
export interface Carried {
  /**
   * The subject of the seal: the block's text; nothing in the block, with a signature or with ciphertext; or a call of
   * the turn.
   */
  readonly what: 'text' | 'signature' | 'data' | 'call'
  /** Unset for reasoning without a format, and for calls. */
  readonly format: string | undefined
  /** The number of its piece of reasoning, or the id of the call. */
  readonly place: string
  /** Empty for an unsealed text: some clients accept thinking blocks only with a signature. */
  readonly sealed: string
}

/** The signature, in base64. */
export function carry({ what, format = '', place, sealed }: Carried): string {
  const text = `mgw|${what}|${encoded(format)}|${encoded(place)}|${sealed}`
  return Buffer.from(text, 'utf8').toString('base64')
}

/** The inverse of `carry`; undefined for a value made elsewhere. */
export function carried(value: string): Carried | undefined {
  if (!value.startsWith(START)) return undefined
  const text = Buffer.from(value, 'base64').toString('utf8')
  const match = PATTERN.exec(text)
  if (!match) return undefined
  const [head, what, format = '', place = ''] = match
  return {
    what: what as Carried['what'],
    format: format === '' ? undefined : decoded(format),
    place: decoded(place),
    sealed: text.slice(head.length),
  }
}

/** Providers may send lone surrogates, which cannot be encoded. */
const encoded = (text: string): string => encodeURIComponent(wellFormed(text))

/** Clients may modify the values. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
