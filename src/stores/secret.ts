/** Secrets of API keys: shown once, stored as a hash. */
import { createHash, randomBytes } from 'node:crypto'
import type { KeyKind } from '../core/ports.ts'

const PREFIX: Readonly<Record<KeyKind, string>> = { key: 'mgw_', publishable: 'mgw_pk_', session: 'mgw_es_' }

/** `preview`: the part that is always visible. */
export function newSecret(kind: KeyKind): { key: string; hash: string; preview: string } {
  const key = `${PREFIX[kind]}${randomBytes(32).toString('base64url')}`
  // Prefix and first characters together would reveal eight characters of the key.
  const preview = `${PREFIX[kind]}…${key.slice(-4)}`
  return { key, hash: createHash('sha256').update(key).digest('hex'), preview }
}
