/** Compares the models of a running LiteLLM with those of the running gateway, by one small request for each. */
import { formatMoney } from '../../core/money.ts'
import { jsonIn } from '../../json/json.ts'
import { call, parseUrl, readText } from '../http.ts'
import { errorCode, Failure } from '../io.ts'
import { publicBase, withKey } from '../public.ts'
import type { Session } from '../session.ts'
import { listOf, type Section, sectionOf, textOf } from './sections.ts'

/** Requests under way at each of the two. */
const MAX_REQUESTS = 4
/** Answers that cost the same may differ by a few tokens. */
const COST_FACTOR = 1.1

/** Holds what one gateway shows of a model. */
export interface Seen {
  readonly isListed: boolean
  /** Status of the answer; undefined where no request was sent, 0 where no answer came. */
  readonly status: number | undefined
  /** Model that its answer names. */
  readonly model: string | undefined
  /** Cost in USD that its answer names. */
  readonly cost: string | undefined
}

/** A model of either of the two. */
export interface Compared {
  readonly model: string
  readonly operation: string
  readonly old: Seen
  readonly new: Seen
  /** Differences as people read them. */
  readonly differences: readonly string[]
}

/** One of the two gateways. */
interface Side {
  readonly name: string
  readonly base: string
  readonly costHeader: string
  readonly send: <T>(request: (key: string | undefined) => Promise<T>) => Promise<T>
}

/** `mode` of LiteLLM as operations of ours; chats where it is not known. */
const OPERATIONS: Readonly<Record<string, string>> = {
  chat: 'chat',
  completion: 'chat',
  responses: 'chat',
  embedding: 'embeddings',
}

const REQUESTS: Readonly<Record<string, (model: string) => readonly [path: string, body: object]>> = {
  chat: model => ['/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1 }],
  embeddings: model => ['/v1/embeddings', { model, input: 'Hi' }],
}

/** Holds what the requests are charged to: a key of LiteLLM, if it needs one, and a project of the gateway. */
interface Payers {
  readonly key: string | undefined
  readonly project: string
}

/**
 * Asks both gateways for their lists, and for an answer of each model that serves chats or embeddings. Rejects with a
 * Failure where a list cannot be read.
 */
export async function compare(address: string, { key, project }: Payers, session: Session): Promise<Compared[]> {
  const { origin, pathname } = parseUrl(address, 'http://litellm:4000')
  const old: Side = {
    name: 'LiteLLM',
    base: `${origin}${pathname.replace(/\/(?:v1\/?)?$/, '')}`,
    costHeader: 'x-litellm-response-cost',
    send: request => request(key),
  }
  const own: Side = {
    name: 'the gateway',
    base: await publicBase(undefined, session),
    costHeader: 'x-gateway-cost',
    send: request => withKey(session.io.env.GATEWAY_API_KEY, project, session, request),
  }
  const [olds, news] = [idsOf(await listAt(old, '/v1/models')), idsOf(await listAt(own, '/v1/models'))]
  const modes = await listAt(old, '/model/info').catch(() => [])
  const operations = new Map([...modes.map(modeOf), ...news])
  const names = [...new Set([...olds.keys(), ...news.keys()])].sort()
  const compared: Compared[] = []
  const left = [...names]
  const next = async () => {
    for (let model = left.shift(); model !== undefined; model = left.shift()) {
      const operation = operations.get(model) ?? 'chat'
      const [before, now] = await Promise.all([
        seen(old, model, operation, olds.has(model)),
        seen(own, model, operation, news.has(model)),
      ])
      compared.push({ model, operation, old: before, new: now, differences: differencesOf(before, now) })
      session.io.progress?.(`compared ${compared.length} of ${names.length} models\n`)
    }
  }
  await Promise.all(Array.from({ length: MAX_REQUESTS }, next))
  return compared.sort((a, b) => (a.model < b.model ? -1 : 1))
}

/** Name and operation of an entry of `/model/info`. */
function modeOf(entry: Section): readonly [string, string] {
  const mode = textOf(sectionOf(entry.model_info).mode) ?? 'chat'
  return [String(entry.model_name), OPERATIONS[mode] ?? mode]
}

/** Operation by id; LiteLLM lists no operations. */
const idsOf = (entries: readonly Section[]): Map<string, string> =>
  new Map(
    entries.map(({ id, operations }) => {
      const served = listOf(operations).map(String)
      return [String(id), served.find(one => one in REQUESTS) ?? served[0] ?? 'chat']
    }),
  )

async function listAt({ name, base, send }: Side, path: string): Promise<readonly Section[]> {
  const { status, body } = await send(key => ask(`${base}${path}`, key))
  if (status === 200 && Array.isArray(sectionOf(body).data)) return listOf(sectionOf(body).data).map(sectionOf)
  const why = status === 0 ? 'cannot be reached' : `answered with status ${status} and no list of models`
  throw new Failure(`${name} at ${base}${path} ${why}`)
}

/** Leaves patterns out. A model that only the other gateway lists gets a request too, since aliases are not listed. */
async function seen(side: Side, model: string, operation: string, isListed: boolean): Promise<Seen> {
  const request = model.includes('*') ? undefined : REQUESTS[operation]
  if (!request) return { isListed, status: undefined, model: undefined, cost: undefined }
  const [path, body] = request(model)
  const answer = await side.send(key => ask(`${side.base}${path}`, key, body))
  const cost = answer.headers[side.costHeader] ?? sectionOf(sectionOf(answer.body).usage).cost
  return { isListed, status: answer.status, model: textOf(sectionOf(answer.body).model), cost: amountOf(cost) }
}

/** A decimal, also of `3.5e-06`; undefined for what is no amount. */
function amountOf(cost: unknown): string | undefined {
  const amount = typeof cost === 'number' || textOf(cost) ? Number(cost) : Number.NaN
  return amount >= 0 && amount < 1e9 ? formatMoney(BigInt(Math.round(amount * 1e9))) : undefined
}

/** Answers with status 0 where the other end cannot be reached. */
async function ask(address: string, key: string | undefined, body?: object) {
  const headers = { 'user-agent': 'gatewayctl', ...(key !== undefined && { authorization: `Bearer ${key}` }) }
  try {
    const response = await call(new URL(address), { method: body ? 'POST' : 'GET', headers, body })
    const text = await readText(response)
    return { status: response.statusCode!, headers: response.headers, body: jsonIn(text) }
  } catch (thrown) {
    if (errorCode(thrown) === undefined && !(thrown instanceof Error)) throw thrown
    return { status: 0, headers: {}, body: undefined }
  }
}

function differencesOf(old: Seen, own: Seen): string[] {
  const found: string[] = []
  if (!own.isListed && own.status !== 200) found.push('missing here')
  else if (!own.isListed) found.push('not listed here')
  if (!old.isListed && old.status !== 200) found.push('new here')
  else if (old.status !== own.status)
    found.push(`status ${shownStatus(old.status)} there, ${shownStatus(own.status)} here`)
  const [before, now] = [Number(old.cost), Number(own.cost)]
  if (before > 0 && now > 0 && (before > now * COST_FACTOR || now > before * COST_FACTOR)) found.push('another cost')
  return found
}

/** The status of `Seen` in words. */
export const shownStatus = (status: number | undefined): string =>
  status === undefined ? 'not asked' : status === 0 ? 'no answer' : String(status)
