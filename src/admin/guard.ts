/** Access control of the admin listener: browsers reach its page alone, and all else is for holders of the token. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIPv4 } from 'node:net'
import { errors } from '../lib/error.ts'

const HOST = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::\d{1,5})?$/i

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))

/**
 * Throws 403 for anything that a page in the operator's browser could send: a foreign name that resolves to this
 * address (DNS rebinding), or any `Origin`. Accepts as `Host`: loopback, the configured name, and the local address of
 * the connection, with any port.
 */
export function checkSender(request: IncomingMessage, listenHost: string): void {
  if (request.headers.origin !== undefined)
    throw errors.forbidden('The admin listener does not serve browsers (Origin was sent), but for the page at /ui.')
  checkHost(request, listenHost)
}

/** Throws 403 for a `Host` that is none of the names listed at `checkSender`, and not `other`. */
export function checkHost(request: IncomingMessage, listenHost: string, other?: string): void {
  const { host } = request.headers
  const name = HOST.exec(host ?? '')?.[1]?.toLowerCase()
  if (name && (isLoopback(name) || [listenHost.toLowerCase(), other, localHost(request)].includes(name))) return
  throw errors.forbidden(
    `Host ${name ? `"${name}"` : 'header'} is not accepted here; address the admin listener as localhost, 127.0.0.1 ` +
      `or [::1], or by the address that it listens on.`,
  )
}

function localHost({ socket }: IncomingMessage): string | undefined {
  const address = socket.localAddress?.replace(/^::ffff:(?=\d+\.)/, '')
  return address?.includes(':') ? `[${address}]` : address
}

/** Returns a comparison with `secret` in constant time. */
export function equals(secret: string): (given: string) => boolean {
  const expected = digest(secret)
  return given => timingSafeEqual(digest(given), expected)
}

/** Checks `Authorization: Bearer <token>`; throws 401. */
export function tokenCheck(token: string): (request: IncomingMessage) => void {
  const isToken = equals(token)
  return request => {
    const given = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
    if (given !== undefined && isToken(given)) return
    throw errors.invalidToken(
      `${given === undefined ? 'No admin token was sent.' : 'The admin token is wrong.'} ` +
        'Send "Authorization: Bearer <token>" with the content of admin.token, which is beside the database.',
    )
  }
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
