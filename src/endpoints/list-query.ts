/** Reads the query of a list: limit, order and cursor. */
import { errors } from '../lib/error.ts'

const LIMIT = { usual: 20, most: 100 }

/** `after`: id of the entry before the first that is listed; undefined from the start. */
export interface ListQuery {
  readonly limit: number
  readonly order: 'asc' | 'desc'
  readonly after: string | undefined
}

/** Throws a 400 that names the parameter. */
export function listQuery(text: string): ListQuery {
  const query = new URLSearchParams(text)
  const limit = Number(query.get('limit') ?? LIMIT.usual)
  const order = query.get('order') ?? 'desc'
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT.most) {
    throw errors.invalidField('limit', `expected a number from 1 to ${LIMIT.most}`)
  }
  if (order !== 'asc' && order !== 'desc') throw errors.invalidField('order', 'expected asc or desc')
  return { limit, order, after: query.get('after') ?? undefined }
}

/** `data`: those of this part. */
export const listOf = (data: readonly { readonly id?: unknown }[], hasMore: boolean) => ({
  object: 'list',
  data,
  has_more: hasMore,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
})
