/** Requests of browsers: who sends them, their cookie and their forms; and the headers of answers. */
import type { IncomingMessage } from 'node:http'
import { readBody } from '../admin/body.ts'
import { errors } from '../lib/error.ts'
import type { Session, Sessions } from './sessions.ts'

const FORM_LIMIT = 256 * 1024
const FORM = 'application/x-www-form-urlencoded'

/** Sent with every answer, also with errors and files. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // With "no-referrer", browsers send "Origin: null" with forms.
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** Throws 403 for a request that another origin could have sent: one that changes something, or one by a script. */
export function checkOrigin({ method, headers }: IncomingMessage): void {
  const { origin, host, 'sec-fetch-site': site, 'sec-fetch-mode': mode } = headers
  const isOwn = origin === undefined || origin === `http://${host}` || origin === `https://${host}`
  const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none'
  const isVisit = method !== 'POST' && (mode === undefined || mode === 'navigate')
  if (isOwn && (isVisit || !isForeign)) return
  throw errors.forbidden('This request came from another origin. Use the page at its own address.')
}

/** Distinguishes gateways of one host: browsers send a cookie to every port. */
const cookieName = ({ socket }: IncomingMessage): string => `gateway_ui_${socket.localPort}`

/** The value of `set-cookie` that signs a browser in; without a session, the one that signs it out. */
export function cookieOf(request: IncomingMessage, session?: Session): string {
  const seconds = session === undefined ? 0 : Math.floor((session.expiresAt - Date.now()) / 1000)
  const isSecure = request.headers['x-forwarded-proto'] === 'https'
  return (
    `${cookieName(request)}=${session?.id ?? ''}; Path=/ui; Max-Age=${seconds}; HttpOnly; SameSite=Strict` +
    (isSecure ? '; Secure' : '')
  )
}

/** The session whose id the cookie holds. */
export function sessionOf(request: IncomingMessage, sessions: Sessions): Session | undefined {
  const name = `${cookieName(request)}=`
  const cookies = (request.headers.cookie ?? '').split(';').map(cookie => cookie.trim())
  const found = cookies.find(cookie => cookie.startsWith(name))
  return found === undefined ? undefined : sessions.find(found.slice(name.length))
}

/** The fields of a form. Throws 415 for any other body. */
export async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== FORM) throw errors.unsupportedMediaType(type, [FORM])
  return new URLSearchParams((await readBody(request, FORM_LIMIT)).toString('utf8'))
}
