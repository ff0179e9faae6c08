/** Secrets without content: their hash identifies them. */
import { createHash, randomBytes } from 'node:crypto'

interface Opaque {
  /** Shown once. */
  readonly text: string
  /** SHA-256, hex. */
  readonly hash: string
}

/** SHA-256 in hex; a text counts as UTF-8. */
export const sha256 = (text: string | Uint8Array): string => createHash('sha256').update(text).digest('hex')

/** `prefix` and as many random bytes, in base64url. */
export function opaque(prefix: string, bytes: number): Opaque {
  const text = `${prefix}${randomBytes(bytes).toString('base64url')}`
  return { text, hash: sha256(text) }
}
