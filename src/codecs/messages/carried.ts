/**
 * Sealed reasoning of other dialects inside thinking blocks. A thinking block's signature is opaque to clients, and all
 * of them send it back, so it carries what such a block has no field for: base64 of `mgw|<what>|<dialect>|<place>|<seal>`.
 */
import { wellFormed } from '../../core/json.ts'

/** The dialect whose signatures stand in a thinking block as they are. */
export const NATIVE_FORMAT = 'anthropic-claude-v1'

/** How the values that are made here begin: `mgw` in base64. The signatures of this dialect's provider never do. */
const START = 'bWd3'
const PATTERN = /^mgw\|(text|signature|data|call)\|([^|]*)\|([^|]*)\|/

export interface Carried {
  /**
   * What the seal belongs to: the text of its block; nothing in the block, with a signature or with ciphertext; a call
   * of the same turn.
   */
  readonly what: 'text' | 'signature' | 'data' | 'call'
  /** Unset for reasoning that names no dialect, and for calls. */
  readonly format: string | undefined
  /** The number of its piece of reasoning, or the id of the call. */
  readonly place: string
  /** Empty for a text that nobody sealed: a block without a signature is no thinking to some clients. */
  readonly sealed: string
}

export function carry({ what, format = '', place, sealed }: Carried): string {
  const text = `mgw|${what}|${encoded(format)}|${encoded(place)}|${sealed}`
  return Buffer.from(text, 'utf8').toString('base64')
}

/** The inverse of `carry`; undefined for a value that stands for itself. */
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

/** Providers may name half a character, which cannot be encoded. */
const encoded = (text: string): string => encodeURIComponent(wellFormed(text))

/** Clients may change what they hold. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
