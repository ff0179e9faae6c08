/** Which addresses a client may hand on to a provider. A provider or a local engine would fetch them for us. */
import { isPublicHost } from '../core/address.ts'
import { errors } from '../core/error.ts'

const MAX_URL = 8192
/** Of the data only the beginning is looked at: the rest is for the provider to read. */
const IMAGE_DATA =
  /^data:(?:image\/(?!svg)[a-z0-9.+-]+|application\/octet-stream)?(?:;[^;,]+)*;base64,(?:[a-z0-9+/_=\s-]{64}|[a-z0-9+/_-]{2}[a-z0-9+/_=\s-]{0,61}$)/i

/** Throws unless `url` is a data URL of an image, or http(s) to a public host without credentials. */
export function assertImageUrl(url: string, param: string): void {
  if (/^data:/i.test(url)) {
    if (IMAGE_DATA.test(url)) return
    throw errors.invalidParameters(`${param}: must be a base64 data URL of an image (png, jpeg, gif or webp)`, param)
  }
  if (url.length > MAX_URL || !isPublic(url)) throw errors.urlNotAllowed(param)
}

function isPublic(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password, hostname } = new URL(text)
  return (protocol === 'https:' || protocol === 'http:') && username === '' && password === '' && isPublicHost(hostname)
}
