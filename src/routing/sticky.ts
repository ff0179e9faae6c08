/** Whose requests stay with one provider. */
import { createHash } from 'node:crypto'
import type { Model } from '../core/catalog.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Strategy } from './score.ts'

/** Longer names are kept as their hash. */
const MAX_NAME = 100

/**
 * The key of a session: `x-session-id`, else `prompt_cache_key`, else `user`, of one project and one requested model.
 * Undefined for a request of none.
 */
export function sessionKey(ex: Exchange): string | undefined {
  const { prompt_cache_key, user } = ex.chat
  const name = ex.header('x-session-id') || prompt_cache_key || user
  if (!name) return undefined
  const short = name.length > MAX_NAME ? createHash('sha256').update(name).digest('base64') : name
  return `session ${ex.principal?.projectId ?? ''} ${ex.requestedModel} ${short}`
}

const preferences = new WeakMap<Model, Map<Strategy, readonly [whole: string, streamed: string]>>()

/** Models are preferred apart where other weights count. */
export function preferenceKey(model: Model, strategy: Strategy, streaming: boolean): string {
  let byStrategy = preferences.get(model)
  if (!byStrategy) {
    byStrategy = new Map()
    preferences.set(model, byStrategy)
  }
  let keys = byStrategy.get(strategy)
  if (!keys) {
    keys = [`model ${model.id} ${strategy}`, `model ${model.id} ${strategy} streamed`]
    byStrategy.set(strategy, keys)
  }
  return keys[streaming ? 1 : 0]
}
