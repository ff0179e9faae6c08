/** Whose requests stay with one provider. */
import { createHash } from 'node:crypto'
import type { Model } from '../core/catalog.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Strategy } from './score.ts'

/** Longer names are kept as their hash. */
const MAX_NAME = 100

/**
 * The key of a session: a header that names one, else `prompt_cache_key`, else `user`, of one project and one requested
 * model. Undefined for a request of none.
 */
export function sessionKey(ex: Exchange): string | undefined {
  // The user of an embeddings request is always the organization: that is no session.
  const name = named(ex) || (ex.endpoint.operation?.name === 'chat' && (ex.chat.prompt_cache_key || ex.chat.user))
  if (!name) return undefined
  const short = name.length > MAX_NAME ? createHash('sha256').update(name).digest('base64') : name
  return `session ${ex.principal?.projectId ?? ''} ${ex.requestedId} ${short}`
}

/** As agents call it (field notes section 3.5). */
const headers = ['x-session-id', 'x-session-affinity', 'session_id', 'session-id'] as const

function named(ex: Exchange): string | undefined {
  for (const name of headers) {
    const value = ex.header(name)
    if (value) return value
  }
  return undefined
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
