/** Reads the end user and the tags of a request from its headers and its body. */
import type { HttpRequest } from '../core/http-request.ts'
import { type EndUserOptions, type Labels, NO_LABELS } from '../core/policy.ts'
import { isObject, isWellFormed, type Json, jsonIn, objectIn } from '../json/json.ts'
import { Form } from '../lib/body.ts'
import { errors } from '../lib/error.ts'

const TAGS_HEADER = 'x-gateway-tags'
/** The bounds of OpenAI's `metadata`. */
const MAX_TAGS = 16
const MAX_TAG_KEY_CHARACTERS = 64
const MAX_TAG_VALUE_CHARACTERS = 512
const MAX_END_USER_CHARACTERS = 256
/** Characters of an agent's `user_id` that are looked into. */
const MAX_AGENT_CHARACTERS = 4096

/** Facts that name an end user. */
interface Source {
  readonly http: Pick<HttpRequest, 'header'>
  /** End user whom the credential names: nothing else counts then. */
  readonly proven: string | undefined
  readonly options: EndUserOptions | undefined
}

/** The labels by the headers, and by the body where it has been read. Throws a 400 that names the bound. */
export function labelsOf(source: Source, body?: unknown): Labels {
  const fields = body instanceof Form ? textsOf(body) : isObject(body) ? chatFields(body) : undefined
  const endUser = source.proven === undefined ? named(source, fields) : wellFormed(source.proven)
  const header = source.http.header(TAGS_HEADER)
  const metadata = isObject(fields?.metadata) ? fields.metadata : undefined
  if (header === undefined && metadata === undefined)
    return endUser === undefined ? NO_LABELS : { endUser, tags: NO_TAGS }
  const tags = new Map<string, string>()
  if (header !== undefined) readHeader(header, tags)
  if (metadata) readMetadata(metadata, tags)
  return { endUser, tags }
}
const { tags: NO_TAGS } = NO_LABELS

/** Calls of the AI SDK have the fields of a chat request in their options. */
function chatFields(body: Json): Json {
  const { gateway } = objectIn(body.providerOptions)
  return isObject(gateway) ? gateway : body
}

/** The header before the body. */
function named({ http, options }: Source, body: Json | undefined): string | undefined {
  const { header, field = 'user' } = options ?? {}
  const given = header === undefined ? undefined : nameIn(textOf(http.header(header)), header, options)
  if (given !== undefined || !body) return given
  if (field !== 'user') return nameIn(at(body, field), field, options)
  const name = nameIn(body.user, 'user', options) ?? nameIn(body.safety_identifier, 'safety_identifier', options)
  return name ?? nameIn(personOf(at(body, 'metadata.user_id')), 'metadata.user_id', options)
}

/** Without options nothing is refused: what is too long for a name stays unknown. */
function nameIn(value: unknown, param: string, options: EndUserOptions | undefined): string | undefined {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text !== 'string') return undefined
  if (text.length > MAX_END_USER_CHARACTERS) {
    if (options) throw tooLong(param, 'the name of an end user', MAX_END_USER_CHARACTERS)
    return undefined
  }
  return wellFormed(text) || undefined
}

/** The account or device of which a coding agent writes in `user_id`, without its session. */
function personOf(value: unknown): unknown {
  if (typeof value !== 'string' || value.length > MAX_AGENT_CHARACTERS) return value
  if (!value.startsWith('{')) return value.replace(SESSION, '')
  const parsed = jsonIn(value)
  return isObject(parsed) ? parsed.account_uuid || parsed.device_id : value
}
const SESSION = /_session_[0-9a-f-]{36}$/i

function at(body: Json, path: string): unknown {
  let value: unknown = body
  for (const name of path.split('.')) value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value
}

/** `k=v` pairs. */
function readHeader(header: string, tags: Map<string, string>): void {
  for (const part of textOf(header)!.split(',')) {
    const pair = part.trim()
    if (pair === '') continue
    const split = pair.indexOf('=')
    if (split < 1) {
      const message = `${TAGS_HEADER}: "${pair.slice(0, MAX_TAG_KEY_CHARACTERS)}" is not a tag. Write pairs such as "team=blue,feature=chat".`
      throw errors.invalidParameters(message, TAGS_HEADER)
    }
    add(tags, pair.slice(0, split), pair.slice(split + 1), TAGS_HEADER)
  }
}

/** Texts, numbers and truth values; a tag of the header stays. `user_id` names the end user. */
function readMetadata(metadata: Json, tags: Map<string, string>): void {
  for (const [key, value] of Object.entries(metadata)) {
    if (key === 'user_id' || (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean'))
      continue
    if (!tags.has(wellFormed(key))) add(tags, key, String(value), 'metadata')
  }
}

function add(tags: Map<string, string>, given: string, value: string, param: string): void {
  const key = wellFormed(given)
  if (key.length > MAX_TAG_KEY_CHARACTERS) throw tooLong(param, 'the key of a tag', MAX_TAG_KEY_CHARACTERS)
  if (value.length > MAX_TAG_VALUE_CHARACTERS)
    throw tooLong(param, `the value of the tag "${key}"`, MAX_TAG_VALUE_CHARACTERS)
  if (key === '') return
  tags.set(key, wellFormed(value))
  if (tags.size > MAX_TAGS) {
    throw errors.invalidField(param, `a request may have at most ${MAX_TAGS} tags.`)
  }
}

const tooLong = (param: string, what: string, most: number) =>
  errors.invalidField(param, `${what} may have at most ${most} characters.`)

/** A header's text: Node reads bytes as Latin-1, and clients write UTF-8. */
function textOf(header: string | undefined): string | undefined {
  if (header === undefined || !BEYOND_ASCII.test(header)) return header
  const text = Buffer.from(header, 'latin1').toString('utf8')
  return text.includes('\ufffd') ? header : text
}
const BEYOND_ASCII = /[\x80-\xff]/

/** Texts as every store can hold them, in one line. */
const wellFormed = (text: string): string =>
  (isWellFormed(text) ? text : Buffer.from(text).toString()).replace(CONTROLS, ' ').trim()
const CONTROLS = /\p{Cc}+/gu

const textsOf = (form: Form): Json => ({ user: form.texts.get('user')?.[0] })
