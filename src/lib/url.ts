/** Reads texts of others as addresses, in time that their length bounds. */

/** Maximum length of an address or a redirect. */
const MAX_URL_CHARACTERS = 64 * 1024
/**
 * Characters of user, host and port. To encode a host that is not plain takes time by its length times its distinct
 * characters: 19,000 of them took a second.
 */
const MAX_AUTHORITY_CHARACTERS = 1_000
const MAX_ENCODED_CHARACTERS = 100
/** As parsers read it: behind a scheme, or slashes alone where there is a base; backslashes are slashes. */
const AUTHORITY = /^[\0-\x20]*(?:[a-z][a-z0-9+.-]*:[/\\]*|[/\\]{2,})([^/\\?#]*)/i
const REMOVED = /[\t\n\r]/g
const IS_PLAIN = /^[\x21-\x24\x26-\x7e]*$/

/** Whether a text is written as an http(s) address. */
export const isAddress = (text: string): boolean => /^https?:/i.test(text)

/** The address that `text` is, behind `base` if that is given; undefined for none, and for one whose host is overlong. */
export function urlOf(text: string, base?: URL): URL | undefined {
  if (text.length > MAX_URL_CHARACTERS) return undefined
  const [, authority = ''] = AUTHORITY.exec(text.replace(REMOVED, '')) ?? []
  if (authority.length > (IS_PLAIN.test(authority) ? MAX_AUTHORITY_CHARACTERS : MAX_ENCODED_CHARACTERS))
    return undefined
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}
