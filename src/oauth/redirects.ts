/** Where a person may be sent back to (RFC 8252, RFC 9700). */

const MAX_LENGTH = 2_000
const LOOPBACK = new Set(['127.0.0.1', '[::1]', 'localhost'])
const FORBIDDEN = /[\s\\*\p{Cc}\p{Cf}]/u
/** A reversed domain name, which is unique to its owner. */
const REVERSED = /^[a-z][a-z0-9-]*(\.[a-z0-9-]+)+$/

/** What is wrong with an address that a client registers; undefined for a good one. `schemes` are those of known programs. */
export function redirectIssue(uri: string, schemes: ReadonlySet<string>): string | undefined {
  if (uri.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`
  if (FORBIDDEN.test(uri)) return 'has blanks, control characters, a backslash or an asterisk'
  if (!URL.canParse(uri)) return 'is no absolute address'
  const { protocol, hostname, username, password } = new URL(uri)
  if (uri.includes('#')) return 'has a fragment'
  if (username !== '' || password !== '') return 'holds credentials'
  const scheme = protocol.slice(0, -1)
  if (/^https?:(?!\/\/)/i.test(uri)) return 'has no host as it is written'
  if (scheme === 'https') return undefined
  if (scheme === 'http') return LOOPBACK.has(hostname) ? undefined : 'must be https, or http on the loopback'
  if (schemes.has(scheme) || REVERSED.test(scheme)) return undefined
  return `has the scheme "${scheme}", which mcp.redirect_schemes does not name`
}

/** Whether a request's address is one of those registered, as text; on the loopback its port may be another one. */
export const isRegistered = (registered: readonly string[], uri: string): boolean =>
  registered.some(one => one === uri || withoutPort(one) === (withoutPort(uri) ?? ''))

const HTTP = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::(\d{1,5}))?(?=[/?]|$)(.*)$/s

/** Undefined for what is not http on the loopback, as it is written. */
function withoutPort(uri: string): string | undefined {
  const [, host, port, rest] = HTTP.exec(uri) ?? []
  return host === undefined || Number(port ?? 1) > 65_535 ? undefined : `${host}${rest}`
}

/** `uri` with more parameters; those that it has stay. */
export function withParameters(uri: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const url = new URL(uri)
  const added = new URLSearchParams()
  for (const [name, text] of Object.entries(parameters)) if (text !== undefined) added.append(name, text)
  url.search = url.search === '' ? `?${added}` : `${url.search}&${added}`
  return url.href
}

/** Whom a person is sent to, in words. */
export function placeOf(uri: string): string {
  const { protocol, host, hostname } = new URL(uri)
  if (protocol === 'http:' && LOOPBACK.has(hostname)) return 'a program on this computer'
  return protocol === 'https:' ? host : `the program for ${protocol} links`
}

/** As a Content-Security-Policy names it. It has no form for IPv6 addresses. */
export function sourceOf(uri: string): string {
  const { protocol, origin, hostname } = new URL(uri)
  if (protocol !== 'http:' && protocol !== 'https:') return protocol
  return hostname.startsWith('[') ? protocol : origin
}

export const isLoopback = (uri: string): boolean => {
  const { protocol, hostname } = new URL(uri)
  return protocol === 'http:' && LOOPBACK.has(hostname)
}
