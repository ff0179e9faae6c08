/** Rules of realtime client secrets that every store shares. */
import { createHash, randomBytes } from 'node:crypto'
import type { Principal } from '../../core/ports.ts'

/** Live secrets of a key; those that end first make room. */
export const MAX_SECRETS = 1000
/** Secrets that are over, of any key, which each new one removes. */
export const SECRETS_FORGOTTEN = 20

/** Makes a secret, its SHA-256, the id of the session that it opens, and the text of `secretPrincipal`. */
export function newClientSecret({ endUser }: Principal, session: string) {
  const secret = `ek_${randomBytes(32).toString('base64url')}`
  const hash = createHash('sha256').update(secret).digest('hex')
  const text = endUser === undefined ? session : JSON.stringify([endUser, session])
  return { secret, hash, text, id: `sess_${randomBytes(12).toString('hex')}` }
}

/** Where a session's settings stand, so that no row can be passed off as another one. */
export const placeOfSession = (hash: string): string => `realtime|${hash}`

/** Returns whom a secret makes. `text`: the settings, and before them the end user whom the token of its maker names. */
export function secretPrincipal(principal: Principal, id: string, text: string, expiresAt: number): Principal {
  const [endUser, session] = text.startsWith('[') ? (JSON.parse(text) as [string, string]) : [undefined, text]
  const ends = Math.min(principal.expiresAt ?? expiresAt, expiresAt)
  return { ...principal, endUser, expiresAt: ends, realtime: { id, session } }
}
