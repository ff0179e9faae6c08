/** Reads and removes stored responses (docs/responses.md#state). */
import { json } from '../codecs/json.ts'
import { inputItems } from '../codecs/responses/stored.ts'
import { type Endpoint, value, written } from '../core/endpoint.ts'
import { errors, type GatewayError } from '../core/error.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Reply } from '../core/filter.ts'
import type { Json } from '../core/json.ts'
import type { ResponseOwner, ResponseRecord, Services } from '../core/ports.ts'
import { LeasedPieces, PIECE } from './leased-pieces.ts'
import { listOf, listQuery } from './list-query.ts'

const unknown = (id: string): GatewayError =>
  errors.notFound(`No response "${id.slice(0, 100)}" is stored here.`).with({ param: 'id' })

/** Whose responses the caller reads, and since when; undefined where none are stored. Throws 401 without a key. */
function scopeOf({ principal, policy }: Exchange, now: number): { owner: ResponseOwner; since: number } | undefined {
  if (!principal) throw errors.noCredentials()
  const { orgId, projectId, session, kind, responsesMs } = principal
  if (kind === 'publishable') throw errors.forbidden('Publishable keys cannot read responses: ask with a secret key.')
  if (responsesMs === undefined || policy?.keepsReplies === false) return undefined
  return { owner: { orgId, projectId, session: session?.id }, since: now - responsesMs }
}

async function own(ex: Exchange, { responses, now }: Services): Promise<ResponseRecord> {
  const { id = '' } = ex.params
  const scope = scopeOf(ex, now())
  const found = scope && (await responses.find(id, scope.owner, scope.since))
  if (!found) throw unknown(id)
  return found
}

/** Large responses go out in pieces: a hundred unread ones would otherwise fill the process. */
function replyOf(result: object, { principal }: Exchange, { memory }: Services): Reply {
  const bytes = Buffer.from(JSON.stringify(result))
  if (bytes.length <= PIECE) return written(bytes)
  const headers = ['content-length', String(bytes.length)]
  return { status: 200, headers, events: new LeasedPieces(bytes, memory, principal!.orgId) }
}

const turnOf = ({ turn }: ResponseRecord) => JSON.parse(turn) as { readonly input: Json[]; readonly output: Json[] }

async function read(ex: Exchange, services: Services): Promise<Reply> {
  if (new URLSearchParams(ex.query).get('stream') === 'true') {
    throw errors.unsupported('stream: a stored response is whole; read it without stream.', 'stream')
  }
  const found = await own(ex, services)
  return replyOf(Object.assign(JSON.parse(found.answer), { output: turnOf(found).output }), ex, services)
}

async function remove(ex: Exchange, { responses, now }: Services): Promise<Reply> {
  const { id = '' } = ex.params
  const scope = scopeOf(ex, now())
  if (!scope || !(await responses.remove(id, scope.owner, scope.since))) throw unknown(id)
  return value({ id, object: 'response', deleted: true })
}

async function list(ex: Exchange, services: Services): Promise<Reply> {
  const { limit, order, after } = listQuery(ex.query)
  const found = await own(ex, services)
  const items = inputItems({ id: found.id, input: turnOf(found).input })
  if (order === 'desc') items.reverse()
  const at = after === undefined ? 0 : items.findIndex(({ id }) => id === after) + 1
  if (after !== undefined && at === 0) {
    throw errors.invalidParameters('after: expected the id of an item of this list', 'after')
  }
  return replyOf(listOf(items.slice(at, at + limit), items.length > at + limit), ex, services)
}

async function cancel(ex: Exchange, services: Services): Promise<Reply> {
  const { id } = await own(ex, services)
  throw errors.badRequest(
    `The response "${id}" has ended: only a response that runs in the background can be cancelled.`,
  )
}

const reads = { name: 'response-reads', chain: 'local', codec: json, bodyLimit: 0, body: 'none' } as const

export const storedResponses: readonly Endpoint[] = [
  { ...reads, method: 'GET', path: '/v1/responses/{id}', serve: read },
  { ...reads, method: 'DELETE', path: '/v1/responses/{id}', serve: remove },
  { ...reads, method: 'GET', path: '/v1/responses/{id}/input_items', serve: list },
  { ...reads, method: 'POST', path: '/v1/responses/{id}/cancel', serve: cancel },
]
