/** Signed addresses of results: a compact JWT of one log id and a time, and nothing else. */
import { createHmac, timingSafeEqual } from 'node:crypto'

const HEADER = Buffer.from('{"alg":"HS256"}').toString('base64url')

const macOf = (key: Buffer, signed: string): Buffer => createHmac('sha256', key).update(signed).digest()

/** `expiresAt` in Unix milliseconds. */
export function tokenFor(key: Buffer, logId: string, expiresAt: number): string {
  const claims = Buffer.from(JSON.stringify({ l: logId, exp: Math.floor(expiresAt / 1000) })).toString('base64url')
  const signed = `${HEADER}.${claims}`
  return `${signed}.${macOf(key, signed).toString('base64url')}`
}

/** A digest of 32 bytes in its one spelling: another text of the same bytes is another token. */
const MAC = /^[\w-]{42}[AEIMQUYcgkosw048]$/

/** Whether a token is one of `keys` for this log id, and has not expired. */
export function isValidToken(keys: readonly Buffer[], token: string, logId: string, now: number): boolean {
  const [header, claims, mac, ...rest] = token.split('.')
  if (rest.length > 0 || header !== HEADER || claims === undefined || !MAC.test(mac ?? '')) return false
  const given = Buffer.from(mac!, 'base64url')
  const signed = `${header}.${claims}`
  if (!keys.some(key => timingSafeEqual(macOf(key, signed), given))) return false
  const { l, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString('utf8')) as { l: string; exp: number }
  return l === logId && exp * 1000 > now
}
