/** Keeps the requests of a session with one provider. */
import { createHash } from 'node:crypto'
import type { ChatRequest } from '../core/chat-request.ts'
import type { Headers } from '../core/http-request.ts'
import type { Operation } from '../core/operation.ts'
import type { Model } from '../core/translator.ts'
import { perObject } from '../lib/per-object.ts'
import type { RoutedRequest, RoutingQuery } from './query.ts'
import type { Strategy } from './score.ts'

/** Longer names are kept as their hash. */
const MAX_NAME_CHARACTERS = 100

/** As agents call it (docs/contract.md#session-affinity). */
const sessionHeaders = ['x-session-id', 'x-session-affinity', 'session_id', 'session-id', 'thread-id'] as const

/** Returns the caller's name for its session: a header, else `prompt_cache_key`, else `user`. Undefined without one. */
export function sessionName(
  headers: Headers,
  operation: Pick<Operation, 'name'>,
  request: RoutedRequest,
): string | undefined {
  for (const name of sessionHeaders) {
    const value = headers[name]
    if (value && typeof value === 'string') return value
  }
  // The user of an embeddings request is always the organization: that is no session.
  if (operation.name !== 'chat') return undefined
  const { prompt_cache_key: key, user } = request as ChatRequest
  return key || user || undefined
}

/** The key of a request's session, of one project and one requested model. Undefined for a request of none. */
export function sessionKey(
  { session, principal }: Pick<RoutingQuery, 'session' | 'principal'>,
  requestedId: string,
): string | undefined {
  if (!session) return undefined
  const short = session.length > MAX_NAME_CHARACTERS ? createHash('sha256').update(session).digest('base64') : session
  return `session ${principal?.projectId ?? ''} ${requestedId} ${short}`
}

const preferencesOf = perObject((_: Model) => new Map<Strategy, readonly [whole: string, streamed: string]>())

/** Models are preferred apart where other weights count. */
export function preferenceKey(model: Model, strategy: Strategy, streaming: boolean): string {
  const byStrategy = preferencesOf(model)
  let keys = byStrategy.get(strategy)
  if (!keys) {
    keys = [`model ${model.id} ${strategy}`, `model ${model.id} ${strategy} streamed`]
    byStrategy.set(strategy, keys)
  }
  return keys[streaming ? 1 : 0]
}
