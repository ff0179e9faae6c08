/** Reads what clients of LiteLLM send: a credential in its own header, tags, end users, and a model in the path. */
import type { Exchange } from '../../core/exchange.ts'
import { type EndUserOptions, type Labels, NO_LABELS } from '../../core/policy.ts'
import { isObject, type Json, jsonIn, objectIn } from '../../json/json.ts'
import { Form } from '../../lib/body.ts'
import { labelsOf } from '../../policy/labels.ts'

const KEY_HEADER = 'x-litellm-api-key'
/** Where clients of Azure send their key. */
const AZURE_HEADER = 'api-key'
/** Headers that name a credential and that the one of LiteLLM takes the place of. */
const REPLACED = [KEY_HEADER, AZURE_HEADER, 'x-api-key', 'x-goog-api-key']

const SPEND_HEADER = 'x-litellm-spend-logs-metadata'
/** In the order in which they count. */
const USER_HEADERS = ['x-litellm-customer-id', 'x-litellm-end-user-id']

/** Requests whose credential was found in LiteLLM's header: no other one counts. */
const settled = new WeakSet<object>()
/** Whether the credential of a request is known, so that others are not looked for. */
export const isSettled = (headers: object): boolean => settled.has(headers)

/**
 * Moves the key of LiteLLM's header to where every filter looks for one. It counts before all others: clients keep a
 * provider's own sign-in in `Authorization` beside it. From here on no header of the request holds it but that one.
 */
export function moveCredential(ex: Exchange): void {
  const { headers } = ex.http
  const own = ex.header(KEY_HEADER)?.trim()
  const azure = headers.authorization === undefined ? ex.header(AZURE_HEADER)?.trim() : undefined
  const key = (own || azure)?.replace(/^Bearer +/i, '')
  const replaced: Record<string, undefined> = {}
  for (const name of REPLACED)
    if (headers[name] !== undefined && (key || name === KEY_HEADER)) replaced[name] = undefined
  Object.assign(headers, replaced)
  if (!key) return
  Object.assign(headers, { authorization: `Bearer ${key}` })
  settled.add(headers)
}

/** The model of a path such as `/openai/deployments/{model}/chat/completions` is that of the body, too. */
export function withModel(body: unknown, ex: Exchange): unknown {
  const { model } = ex.http.params
  return model !== undefined && isObject(body) ? Object.assign(body, { model }) : body
}

/** The labels of a request as LiteLLM reads them, besides those that every client may send. */
export function labelsIn(ex: Exchange, body: unknown): Labels {
  const json = isObject(body) && !(body instanceof Form) ? body : {}
  const own = objectIn(json.litellm_metadata)
  const metadata = objectIn(json.metadata)
  const tags = { ...spendOf(ex, metadata), ...tagsOf(ex, [json.tags, metadata.tags, own.tags]) }
  const named = USER_HEADERS.map(name => ex.header(name)).find(Boolean)
  const user = named ?? json.user ?? (typeof own.user === 'string' ? own.user : undefined)
  if (named === undefined && user === json.user && Object.keys(tags).length === 0) return ex.caller.labels
  const read: Json = Object.assign({}, body instanceof Form ? { user: body.texts.get('user')?.[0] } : json, {
    user,
    metadata: Object.assign({}, metadata, tags),
  })
  const proven = ex.caller.principal?.endUser
  const labels = labelsOf({ http: withUser(ex, named), proven, options: optionsFor(ex, named) }, read)
  return labels === NO_LABELS ? ex.caller.labels : labels
}

/** A configured header counts before LiteLLM's. */
const withUser = (ex: Exchange, named: string | undefined) => ({
  header: (name: string) => ex.header(name) ?? (name === optionsFor(ex, named)?.header ? named : undefined),
})

function optionsFor({ snapshot: { endUsers } }: Exchange, named: string | undefined): EndUserOptions | undefined {
  if (named === undefined || endUsers?.header !== undefined) return endUsers
  return Object.assign({ field: 'user' }, endUsers, { header: USER_HEADERS[0] })
}

/** Tags are words such as `prod`, or pairs such as `team:blue`; a word is a tag whose value is `true`. */
function tagsOf(ex: Exchange, lists: readonly unknown[]): Record<string, string> {
  const words = lists.flatMap(list => (Array.isArray(list) ? (list as unknown[]) : []))
  const all = [...words, ...(ex.header('x-litellm-tags')?.split(',') ?? [])]
  const tags: Record<string, string> = {}
  for (const word of all) {
    if (typeof word !== 'string' || word.trim() === '') continue
    const [, key, value = 'true'] = /^\s*([^:=]+)(?:[:=](.*))?$/s.exec(word) ?? ['', word]
    tags[key!.trim()] = value.trim()
  }
  return tags
}

/** Metadata for LiteLLM's spend log: an object of the body, or JSON in a header. */
function spendOf(ex: Exchange, { spend_logs_metadata: own }: Json): Json {
  const header = ex.header(SPEND_HEADER)
  return objectIn(header === undefined ? own : jsonIn(header))
}
