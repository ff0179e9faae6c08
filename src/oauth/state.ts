/** A request for consent between its page and its form: signed, so that nothing is kept and any process can check it. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Scope } from '../mcp/tool.ts'

export const CONSENT_MS = 600_000
/** Of the key that signs. */
export const PURPOSE = 'oauth consent'

/** What a client asks for, as it was checked. */
export interface ConsentRequest {
  readonly clientId: string
  readonly redirectUri: string
  /** As the client gave it. */
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

/** As text: of several spellings of the same bytes one is ours. */
const macOf = (key: Buffer, text: string): string => createHmac('sha256', key).update(text).digest('base64url')
const nonceOf = (cookie: string): string => createHash('sha256').update(cookie).digest('base64url')

export const newCookie = (): string => randomBytes(24).toString('base64url')

export function signed(request: ConsentRequest, cookie: string, key: Buffer, now: number): string {
  const content: Signed = { ...request, nonce: nonceOf(cookie), exp: now + CONSENT_MS }
  const text = Buffer.from(JSON.stringify(content)).toString('base64url')
  return `${text}.${macOf(key, text)}`
}

/** Why a form is refused: it is not ours, its time is over, or another page has been opened since. */
export type SignedIssue = 'forged' | 'expired' | 'another page'

/** `keys` are those that may have signed. */
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
