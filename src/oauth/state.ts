/** The consent request, from its page to its form: signed, so that no process stores it and every process can verify it. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Scope } from '../mcp/tool.ts'

/** How long a form can be sent. */
export const CONSENT_MS = 600_000
/** The purpose of the signing key. */
export const PURPOSE = 'oauth consent'

/** An authorization request that has been checked. */
export interface ConsentRequest {
  readonly clientId: string
  readonly redirectUri: string
  /** As the client sent it. */
  readonly state: string | undefined
  readonly scopes: readonly Scope[]
  readonly challenge: string
  readonly resource: string
}
interface Signed extends ConsentRequest {
  /** SHA-256 of the cookie that came with the page. */
  readonly nonce: string
  /** Unix milliseconds. */
  readonly exp: number
}

/** Compared as text: base64url has several spellings of the same bytes, of which one is valid. */
const macOf = (key: Buffer, text: string): string => createHmac('sha256', key).update(text).digest('base64url')
const nonceOf = (cookie: string): string => createHash('sha256').update(cookie).digest('base64url')

/** The value of the cookie that binds a form to the browser of its page. */
export const newCookie = (): string => randomBytes(24).toString('base64url')

/** The text of the hidden field. */
export function signed(request: ConsentRequest, cookie: string, key: Buffer, now: number): string {
  const content: Signed = { ...request, nonce: nonceOf(cookie), exp: now + CONSENT_MS }
  const text = Buffer.from(JSON.stringify(content)).toString('base64url')
  return `${text}.${macOf(key, text)}`
}

/** Why a form is refused: its signature is wrong, it is too old, or its cookie is that of another page. */
export type SignedIssue = 'forged' | 'expired' | 'another page'

/** The request of a hidden field, or why it is refused. `keys` are those that may have signed it. */
export function opened(
  text: string,
  cookie: string | undefined,
  keys: readonly Buffer[],
  now: number,
): ConsentRequest | SignedIssue {
  const [content = '', mac = ''] = text.split('.')
  const given = Buffer.from(mac)
  const isOurs = keys.some(key => {
    const expected = Buffer.from(macOf(key, content))
    return expected.length === given.length && timingSafeEqual(expected, given)
  })
  if (!isOurs || text !== `${content}.${mac}`) return 'forged'
  const { nonce, exp, ...request } = JSON.parse(Buffer.from(content, 'base64url').toString('utf8')) as Signed
  if (exp <= now) return 'expired'
  return cookie !== undefined && nonceOf(cookie) === nonce ? request : 'another page'
}
