/**
 * Reasoning of other dialects inside thinking blocks. The signature of a thinking block is opaque to clients, so it
 * can carry what such a block has no field for: which dialect the reasoning is of, and which of its pieces belong
 * together. `<dialect>|<block>|<sealed value>`; the seal of a Messages provider has no `|` before its first `:`.
 */

/** The dialect whose signatures stand in a thinking block as they are. */
export const NATIVE_FORMAT = 'anthropic-claude-v1'

export interface Carried {
  /** Unset for reasoning that names no dialect. */
  readonly format: string | undefined
  readonly block: number | undefined
  /** Empty when there is nothing but the dialect. */
  readonly sealed: string
}

export const carry = (format: string | undefined, block: number | undefined, sealed: string): string =>
  `${encodeURIComponent(format ?? '')}|${block ?? ''}|${sealed}`

/** The inverse of `carry`; undefined for a value that stands for itself. */
export function carried(value: string): Carried | undefined {
  const match = /^([^|:]*)\|(\d*)\|/.exec(value)
  if (!match) return undefined
  const [head, format = '', block = ''] = match
  return {
    format: format === '' ? undefined : decoded(format),
    block: block === '' ? undefined : Number(block),
    sealed: value.slice(head.length),
  }
}

/** Clients may change what they hold. */
function decoded(format: string): string {
  try {
    return decodeURIComponent(format)
  } catch {
    return format
  }
}
