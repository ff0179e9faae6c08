/** Reads and removes stored responses (docs/responses.md#state). */

import { json } from '../codecs/json.ts'
import { inputItems, listedItem } from '../codecs/responses/stored.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Exchange } from '../core/exchange.ts'
import type { ResponseOwner, ResponseRecord, Services } from '../core/ports.ts'
import { type Reply, value } from '../core/reply.ts'
import { textsOfTurn } from '../core/stored-responses.ts'
import type { Json } from '../json/json.ts'
import { stringifyLossless } from '../json/lossless.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import { scheduler } from '../limits/scheduler.ts'
import { ownerOf } from '../policy/owner.ts'
import { jsonReply } from './leased-pieces.ts'
import { type ListQuery, listOf, listQuery } from './list-query.ts'

/** Copies of a request's input while it is listed: its text, and its items. */
const RESPONSE_COPIES = 2

const unknown = (id: string): GatewayError =>
  errors.notFound(`No response "${id.slice(0, 100)}" is stored here.`).with({ param: 'id' })

/**
 * Returns the owner of the responses to read and their earliest time; undefined where none are stored. Throws 401
 * without a key.
 */
function scopeOf(
  { caller: { principal, policy } }: Exchange,
  now: number,
): { owner: ResponseOwner; since: number } | undefined {
  if (!principal) throw errors.noCredentials()
  const { kind, responsesMs } = principal
  if (kind === 'publishable') throw errors.forbidden('Publishable keys cannot read responses: ask with a secret key.')
  if (responsesMs === undefined || policy?.keepsReplies === false) return undefined
  return { owner: ownerOf(principal), since: now - responsesMs }
}

async function findOwn(ex: Exchange, { responses, now }: Services): Promise<ResponseRecord> {
  const { id = '' } = ex.http.params
  const scope = scopeOf(ex, now())
  if (!scope) throw unknown(id)
  const found = await responses.find(id, scope.owner, scope.since)
  if (!found) throw unknown(id)
  return found
}

async function read(ex: Exchange, services: Services): Promise<Reply> {
  if (new URLSearchParams(ex.http.query).get('stream') === 'true') {
    throw errors.unsupported('stream: a stored response is complete. Read it without stream.', 'stream')
  }
  const { turn, answer } = await findOwn(ex, services)
  const rest = JSON.parse(answer) as Json
  delete rest.output
  const json = `${JSON.stringify(rest).slice(0, -1)},"output":${textsOfTurn(turn).output}}`
  return jsonReply(Buffer.from(json), ex, services)
}

async function remove(ex: Exchange, { responses, now }: Services): Promise<Reply> {
  const { id = '' } = ex.http.params
  const scope = scopeOf(ex, now())
  if (!scope || !(await responses.remove(id, scope.owner, scope.since))) throw unknown(id)
  return value({ id, object: 'response', deleted: true })
}

async function list(ex: Exchange, services: Services): Promise<Reply> {
  const query = listQuery(ex.http.query)
  const { id, turn } = await findOwn(ex, services)
  const { input } = textsOfTurn(turn)
  const { orgId } = ex.caller.principal!
  const lease = services.memory.lease(orgId, input.length * RESPONSE_COPIES)
  if (!lease.grow(input.length * RESPONSE_COPIES)) throw errors.overloaded()
  try {
    return jsonReply(await scheduler.run(orgId, () => pageOf(id, input, query)), ex, services)
  } finally {
    lease.release()
  }
}

function pageOf(id: string, text: string, { limit, order, after }: ListQuery): Buffer {
  const input = JSON.parse(text) as Json[]
  const items = inputItems({ id, input })
  if (order === 'desc') items.reverse()
  const at = after === undefined ? 0 : items.findIndex(({ id }) => id === after) + 1
  if (after !== undefined && at === 0) {
    throw errors.invalidField('after', 'expected the id of an item of this list')
  }
  const page = items.slice(at, at + limit).map(listedItem)
  return Buffer.from(stringifyLossless(JSON.stringify(listOf(page, items.length > at + limit))))
}

async function cancel(ex: Exchange, services: Services): Promise<Reply> {
  const { id } = await findOwn(ex, services)
  throw errors.badRequest(
    `The response "${id}" has ended. Only a response that runs in the background can be cancelled.`,
  )
}

const reads = { name: 'response-reads', chain: 'local', codec: json, bodyLimit: 0, body: 'none' } as const

/** 404 for what is not stored, or is another project's or session's; `cancel` always refuses. */
export const storedResponses: readonly Endpoint[] = [
  { ...reads, method: 'GET', path: '/v1/responses/{id}', serve: read },
  { ...reads, method: 'DELETE', path: '/v1/responses/{id}', serve: remove },
  { ...reads, method: 'GET', path: '/v1/responses/{id}/input_items', serve: list },
  { ...reads, method: 'POST', path: '/v1/responses/{id}/cancel', serve: cancel },
]
