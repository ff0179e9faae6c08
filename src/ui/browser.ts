/** Requests of browsers: who sends them, their cookie and their forms; and the headers of answers. */
import type { IncomingMessage } from 'node:http'
import { readBody } from '../admin/body.ts'
import { errors } from '../lib/error.ts'
import type { Session } from './sessions.ts'

const MAX_FORM_BYTES = 256 * 1024
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

/** Cookies by their purpose. The answer of an identity provider comes from another site, with `Lax` alone. */
const COOKIES = { ui: 'Path=/ui; HttpOnly; SameSite=Strict', oidc: 'Path=/ui/sign-in; HttpOnly; SameSite=Lax' } as const
type Purpose = keyof typeof COOKIES

/** Distinguishes gateways of one host: browsers send a cookie to every port. */
const cookieName = ({ socket }: IncomingMessage, purpose: Purpose): string => `gateway_${purpose}_${socket.localPort}`

const isSecure = ({ headers }: IncomingMessage): boolean => headers['x-forwarded-proto'] === 'https'

/** Address of a path of the page, as the browser has it. */
export const addressOf = (request: IncomingMessage, path: string): string =>
  `${isSecure(request) ? 'https' : 'http'}://${request.headers.host}${path}`

/** The value of `set-cookie`; of 0 seconds, the one that deletes the cookie. */
export const cookieOf = (request: IncomingMessage, purpose: Purpose, value = '', seconds = 0): string =>
  `${cookieName(request, purpose)}=${value}; Max-Age=${seconds}; ${COOKIES[purpose]}${isSecure(request) ? '; Secure' : ''}`

/** The value of `set-cookie` that signs a browser in. */
export const sessionCookie = (request: IncomingMessage, { id, expiresAt }: Session): string =>
  cookieOf(request, 'ui', id, Math.floor((expiresAt - Date.now()) / 1000))

/** The value of a cookie. */
export function cookieIn(request: IncomingMessage, purpose: Purpose): string | undefined {
  const name = `${cookieName(request, purpose)}=`
  const cookies = (request.headers.cookie ?? '').split(';').map(cookie => cookie.trim())
  return cookies.find(cookie => cookie.startsWith(name))?.slice(name.length)
}

/** The fields of a form. Throws 415 for any other body. */
export async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== FORM) throw errors.unsupportedMediaType(type, [FORM])
  return new URLSearchParams((await readBody(request, MAX_FORM_BYTES)).toString('utf8'))
}
