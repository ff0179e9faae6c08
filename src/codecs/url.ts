/** Which addresses a client may hand on to a provider. A provider or a local engine would fetch them for us. */
import ipaddr from 'ipaddr.js'
import { errors } from '../core/error.ts'

const MAX_URL = 8192
const LOCAL_NAMES = /(^|\.)(localhost|local|internal|home\.arpa)\.?$/i
/** Public names that anybody can make lead to any address. */
const WILDCARD_NAMES = /(^|\.)((nip|sslip|xip)\.io|lvh\.me|localtest\.me)\.?$/i
/** All that is routed; the rest of what counts as unicast holds other families' addresses, `::127.0.0.1` too. */
const GLOBAL_IPV6 = /^[23][0-9a-f]{3}:/

/** Throws unless `url` is a data URL of an image, or http(s) to a public host without credentials. */
export function assertImageUrl(url: string, param: string): void {
  if (/^data:/i.test(url)) {
    if (/^data:(image\/(?!svg)[a-z0-9.+-]+|application\/octet-stream)?[;,]/i.test(url)) return
    throw errors.invalidParameters(`${param}: must be a data URL of an image (png, jpeg, gif or webp)`, param)
  }
  if (url.length > MAX_URL || !isPublic(url)) throw errors.urlNotAllowed(param)
}

function isPublic(text: string): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return false
  if (url.username !== '' || url.password !== '') return false
  const host = url.hostname.replace(/^\[|\]$/g, '')
  // WHATWG parsing has already turned every spelling of an address (octal, hex, short forms) into its plain form.
  if (ipaddr.isValid(host)) {
    const address = ipaddr.process(host)
    return address.range() === 'unicast' && (address.kind() === 'ipv4' || GLOBAL_IPV6.test(host))
  }
  return host.includes('.') && !LOCAL_NAMES.test(host) && !WILDCARD_NAMES.test(host)
}
