/** Objects of the Converse wire, each identified by its only key, and the cache points among them. */
import type { ContentPart, Json, Mapping, Message } from '../../src/plugin.ts'
import { pricesHours } from '../shared/breakpoints.ts'
import { familyOf } from './family.ts'

/** A content block, or an element of `system` or of `toolConfig.tools`. */
export type Block = Json

/** A turn of `messages`. */
export interface ConverseTurn {
  role: 'user' | 'assistant'
  content: Block[]
}

/** A block of text, which must not be empty. */
export const textBlock = (text: string): Block => ({ text })

type Mark = NonNullable<Message['tool_result_cache_control']>

/** The breakpoint behind a part; undefined for none. */
export const markOf = (part: ContentPart): Mark | undefined =>
  'cache_control' in part ? (part.cache_control ?? undefined) : undefined

/**
 * The cache point of a breakpoint; none for models without caching, which reject it. Five minutes is the default
 * lifetime; only one maker's models support longer ones, which are sent where they have a price.
 */
export function cachePoint(mark: Mark | undefined, mapping: Mapping): Block[] {
  if (!mark || !mapping.supports.has('prompt_cache')) return []
  const hour = mark.ttl === '1h' && familyOf(mapping).maker === 'anthropic' && pricesHours(mapping)
  return [{ cachePoint: { type: 'default', ...(hour && { ttl: '1h' }) } }]
}
