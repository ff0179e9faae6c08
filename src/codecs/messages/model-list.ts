/** The catalogue in the form of the Messages wire: newest first, paged. */

import type { Headers } from '../../core/http-request.ts'
import { errors } from '../../lib/error.ts'
import type { CatalogEntry } from '../catalog-entry.ts'

const DEFAULT_MODELS = 20
const MAX_MODELS = 1000

/** Messages clients send the version of the API. */
export const isMessagesClient = (headers: Headers): boolean => Boolean(headers['anthropic-version'])

interface ModelInfo {
  readonly type: 'model'
  readonly id: string
  readonly display_name: string
  readonly created_at: string
  readonly lifecycle: 'active' | 'deprecated' | 'retired'
  readonly deprecated_at: string | null
  readonly retires_at: string | null
  readonly max_input_tokens: number | null
  readonly max_tokens: number | null
  /** The catalogue has no equivalent. */
  readonly line: null
  readonly capabilities: null
}

/** Built once per listing, which itself is built once per view. */
const infos = new WeakMap<Buffer, readonly ModelInfo[]>()

/** The page of `listing`, the catalogue as JSON, that `query` requests. `today` is a date such as `2026-01-31`. */
export function modelPage(listing: Buffer, query: URLSearchParams, today: string): object {
  let all = infos.get(listing)
  if (!all) {
    const { data } = JSON.parse(listing.toString('utf8')) as { data: CatalogEntry[] }
    all = data.sort((a, b) => b.created - a.created).map(entry => modelInfo(entry, today))
    infos.set(listing, all)
  }
  const stages = ['lifecycle', 'lifecycle[]'].flatMap(name => query.getAll(name)).flatMap(text => text.split(','))
  const shown = stages.length === 0 ? all : all.filter(({ lifecycle }) => stages.includes(lifecycle))
  const { data, has_more } = pageOf(shown, query)
  return { data, has_more, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
}

/** One entry in the form of Anthropic's models API; `today` as for `modelPage`. */
export function modelInfo(entry: CatalogEntry, today: string): ModelInfo {
  const { id, display_name, created, context_length, max_output, deprecated_at: old, deactivated_at: gone } = entry
  const isOver = (date: string | undefined) => date !== undefined && date <= today
  const lifecycle = isOver(gone) ? 'retired' : isOver(old) ? 'deprecated' : 'active'
  const unlessActive = (date: string | undefined) =>
    date === undefined || lifecycle === 'active' ? null : `${date}T00:00:00Z`
  return {
    type: 'model',
    id,
    display_name,
    created_at: new Date(created * 1000).toISOString().replace('.000Z', 'Z'),
    lifecycle,
    deprecated_at: unlessActive(old),
    retires_at: unlessActive(gone),
    max_input_tokens: context_length ?? null,
    max_tokens: max_output ?? null,
    line: null,
    capabilities: null,
  }
}

function pageOf(all: readonly ModelInfo[], query: URLSearchParams): { data: readonly ModelInfo[]; has_more: boolean } {
  const limit = limitOf(query.get('limit'))
  const after = query.get('after_id')
  const before = query.get('before_id')
  if (after !== null && before !== null) throw errors.combination('Send either after_id or before_id.', 'before_id')
  if (before !== null) {
    const end = placeOf(all, before, 'before_id')
    const start = Math.max(0, end - limit)
    return { data: all.slice(start, end), has_more: start > 0 }
  }
  const start = after === null ? 0 : placeOf(all, after, 'after_id') + 1
  return { data: all.slice(start, start + limit), has_more: start + limit < all.length }
}

function limitOf(text: string | null): number {
  const limit = text === null ? DEFAULT_MODELS : Number(text)
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_MODELS) return limit
  throw errors.invalidParameters(`limit must be an integer from 1 to ${MAX_MODELS}.`, 'limit')
}

function placeOf(all: readonly ModelInfo[], id: string, name: string): number {
  const place = all.findIndex(model => model.id === id)
  if (place >= 0) return place
  throw errors.invalidField(name, `the list has no model "${id.slice(0, 100)}".`)
}
