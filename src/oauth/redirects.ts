/** Redirect URIs: which ones clients may register, and which ones match (RFC 8252, RFC 9700). */
import { urlOf } from '../lib/url.ts'

const MAX_URI_CHARACTERS = 2_000
const LOOPBACK = new Set(['127.0.0.1', '[::1]', 'localhost'])
const FORBIDDEN = /[\s\\*\p{Cc}\p{Cf}]/u
/** A reversed domain name, which is unique to its owner. */
const REVERSED = /^[a-z][a-z0-9-]*(\.[a-z0-9-]+)+$/

/**
 * Checks a redirect URI and describes its first fault; undefined for a valid one. `schemes` are those of
 * `mcp.redirect_schemes`.
 */
export function redirectIssue(uri: string, schemes: ReadonlySet<string>): string | undefined {
  if (uri.length > MAX_URI_CHARACTERS) return `is longer than ${MAX_URI_CHARACTERS} characters`
  if (FORBIDDEN.test(uri)) return 'has blanks, control characters, a backslash or an asterisk'
  const url = urlOf(uri)
  if (!url) return 'is not an absolute URI'
  const { protocol, hostname, username, password } = url
  if (uri.includes('#')) return 'has a fragment'
  if (username !== '' || password !== '') return 'holds credentials'
  const scheme = protocol.slice(0, -1)
  if (/^https?:(?!\/\/)/i.test(uri)) return 'has no // before its host'
  if (scheme === 'https') return undefined
  if (scheme === 'http') return LOOPBACK.has(hostname) ? undefined : 'must be https, or http on the loopback'
  if (schemes.has(scheme) || REVERSED.test(scheme)) return undefined
  return `has the scheme "${scheme}", which mcp.redirect_schemes does not list`
}

/** Whether a URI equals a registered one as text; the port of a loopback address may differ. */
export const isRegistered = (registered: readonly string[], uri: string): boolean =>
  registered.some(one => one === uri || withoutPort(one) === (withoutPort(uri) ?? ''))

const HTTP = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::(\d{1,5}))?(?=[/?]|$)(.*)$/s

/** Undefined for anything but http on a loopback address. */
function withoutPort(uri: string): string | undefined {
  const [, host, port, rest] = HTTP.exec(uri) ?? []
  return host === undefined || Number(port ?? 1) > 65_535 ? undefined : `${host}${rest}`
}

/** `uri` with more parameters behind its own. */
export function withParameters(uri: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const url = new URL(uri)
  const added = new URLSearchParams()
  for (const [name, text] of Object.entries(parameters)) if (text !== undefined) added.append(name, text)
  url.search = url.search === '' ? `?${added}` : `${url.search}&${added}`
  return url.href
}

/** The destination of a redirect, in words. */
export function placeOf(uri: string): string {
  const { protocol, host, hostname } = new URL(uri)
  if (protocol === 'http:' && LOOPBACK.has(hostname)) return 'a program on this computer'
  return protocol === 'https:' ? host : `the program for ${protocol} links`
}

/** The source of a redirect for a Content-Security-Policy, which has no syntax for IPv6 addresses. */
export function sourceOf(uri: string): string {
  const { protocol, origin, hostname } = new URL(uri)
  if (protocol !== 'http:' && protocol !== 'https:') return protocol
  return hostname.startsWith('[') ? protocol : origin
}

/** Whether a redirect leads to a program on the person's own computer. */
export const isLoopback = (uri: string): boolean => {
  const { protocol, hostname } = new URL(uri)
  return protocol === 'http:' && LOOPBACK.has(hostname)
}
