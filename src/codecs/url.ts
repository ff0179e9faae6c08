/** Addresses that clients may pass to a provider, which would fetch them on the gateway's behalf. */
import { isPublicHost } from '../core/address.ts'
import { errors } from '../lib/error.ts'
import { isAddress, urlOf } from '../lib/url.ts'
import { isBase64, MAX_DATA_HEAD_CHARACTERS } from '../wire/wire.ts'

const MAX_URL_CHARACTERS = 8192
/** Only the beginning of the data is checked: the provider reads the rest. */
const IMAGE_DATA =
  /^data:(?:image\/(?!svg)[a-z0-9.+-]+|application\/octet-stream)?(?:;[^;,]+)*;base64,(?:[a-z0-9+/_=\s-]{64}|[a-z0-9+/_-]{2}[a-z0-9+/_=\s-]{0,61}$)/i

/** Origins of `server.fetch_from`: the process fetches from them itself, also where they are private. */
let fetched: ReadonlySet<string> = new Set()

/** Called once at start, before the first request. */
export function fetchFrom(origins: readonly string[]): void {
  fetched = new Set(origins.map(origin => new URL(origin).origin))
}

/** Names the accepted sources in an error. */
const PUBLIC_HTTPS = 'a public https address'
/** Names the accepted sources where data URLs are accepted too. */
export const HTTPS_OR_DATA = `${PUBLIC_HTTPS} or a data URL`

/** Checked characters of a data URL: its head and the beginning of its data. */
const MAX_LOOK_CHARACTERS = MAX_DATA_HEAD_CHARACTERS + 100

/** Throws for a data URL with an overlong media type and parameters; ignores other text. */
function assertDataHead(url: string, param: string): void {
  if (!/^data:/i.test(url)) return
  const head = url.slice(0, MAX_DATA_HEAD_CHARACTERS)
  if (head.includes(',') || url.length < MAX_DATA_HEAD_CHARACTERS) return
  const rule = `a data URL may have at most ${MAX_DATA_HEAD_CHARACTERS} characters before its comma`
  throw errors.invalidField(param, `${rule}, such as "data:application/pdf;base64,"`)
}

/**
 * Throws unless `url` is a data URL of an image, or http(s) without credentials to a public host or to an origin that is
 * fetched from. `taken`: addresses that the error names.
 */
export function assertImageUrl(url: string, param: string, taken?: string): void {
  if (/^data:/i.test(url)) {
    assertDataHead(url, param)
    if (IMAGE_DATA.test(url.slice(0, MAX_LOOK_CHARACTERS))) return
    throw errors.invalidField(param, 'must be a base64 data URL of an image (png, jpeg, gif or webp)')
  }
  if (url.length > MAX_URL_CHARACTERS || !isAddress(url) || !isAllowed(url)) throw errors.urlNotAllowed(param, taken)
}

/**
 * Throws unless `url` is http(s) without credentials to a public host or to an origin that is fetched from. Providers get
 * public https addresses only. `taken`: addresses that the error names.
 */
export function assertAudioUrl(url: string, param: string, taken = PUBLIC_HTTPS): void {
  if (url.length > MAX_URL_CHARACTERS || !isAllowed(url)) throw errors.urlNotAllowed(param, taken)
}

/** Throws unless `url` is https to a public host without credentials: only its provider fetches it. */
export function assertPublicUrl(url: string, param: string): void {
  const isPublic = /^https:/i.test(url) && isAllowed(url, NO_ORIGINS)
  if (url.length > MAX_URL_CHARACTERS || !isPublic) throw errors.urlNotAllowed(param, PUBLIC_HTTPS)
}
const NO_ORIGINS: ReadonlySet<string> = new Set()

/** Checks the source of a file: an address, a data URL of any type, or base64. */
export function assertFile(data: string, param: string): void {
  if (isAddress(data)) assertAudioUrl(data, param, FILE_SOURCES)
  else if (/^data:/i.test(data)) assertDataHead(data, param)
  else if (!isBase64(data)) throw errors.urlNotAllowed(param, FILE_SOURCES)
}
const FILE_SOURCES = `${PUBLIC_HTTPS}, a data URL or base64`

/** Throws unless `url` is a data URL of audio in base64: nothing is fetched in its place. */
export function assertAudioData(url: string, param: string): void {
  assertDataHead(url, param)
  if (AUDIO_DATA.test(url.slice(0, MAX_LOOK_CHARACTERS))) return
  throw errors.invalidField(param, 'must be a base64 data URL of audio, such as "data:audio/wav;base64,"')
}
const AUDIO_DATA = /^data:(?:(?:audio|video)\/[a-z0-9.+-]+|application\/octet-stream)?(?:;[^;,]+)*;base64,[a-z0-9+/_-]/i

/** Throws unless `url` is base64 data, https to a public host without credentials, or of an origin that is fetched from. */
export function assertDocumentUrl(url: string, param: string): void {
  if (/^data:/i.test(url)) {
    assertDataHead(url, param)
    if (/^data:[a-z0-9.+/-]*(?:;[^;,]+)*;base64,[a-z0-9+/_-]/i.test(url.slice(0, MAX_LOOK_CHARACTERS))) return
    throw errors.invalidField(param, 'must be a base64 data URL of a document or an image')
  }
  if (url.length > MAX_URL_CHARACTERS || !isSecure(url) || !isAllowed(url))
    throw errors.urlNotAllowed(param, HTTPS_OR_DATA)
}

/** Whether `url` is https, or of an origin that is fetched from. */
export const isSecure = (url: string): boolean => /^https:/i.test(url) || fetched.has(urlOf(url)?.origin ?? '')

function isAllowed(text: string, origins = fetched): boolean {
  const url = urlOf(text)
  if (!url) return false
  const { protocol, username, password, hostname, origin } = url
  const isPlain = (protocol === 'https:' || protocol === 'http:') && username === '' && password === ''
  return isPlain && (isPublicHost(hostname) || origins.has(origin))
}

/**
 * Throws a 400 where more than one of `fields` says something: each is sent to providers of the client's wire, and the
 * others would be read by none of our checks. `fields` begins with the one to keep.
 */
export function assertOneSource(part: object, at: string, fields: readonly string[]): void {
  const [kept, other] = fields.filter(name => saysAnything(Reflect.get(part, name)))
  if (other === undefined) return
  const where = `${at}.${other}`
  const advice = `cannot be combined with ${at}.${kept}: a part has one file. Keep "${kept}" and leave out "${other}"`
  throw errors.invalidField(where, advice)
}

const saysAnything = (value: unknown): boolean => value != null && value !== ''
