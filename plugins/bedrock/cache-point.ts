/** The caller's cache breakpoints; the wire has a block of its own for them, behind what they end. */
import type { Mapping, Message } from '../../src/plugin.ts'
import type { Block } from './block.ts'
import { familyOf } from './family.ts'

export type Mark = NonNullable<Message['tool_result_cache_control']>

/**
 * The cache point of a breakpoint; none for models that do not cache, because they refuse it. Five minutes are what it
 * lasts by itself, and only one maker's models know more.
 */
export function cachePoint(mark: Mark | undefined, mapping: Mapping): Block[] {
  if (!mark || !mapping.supports.has('prompt_cache')) return []
  const hour = mark.ttl === '1h' && familyOf(mapping).maker === 'anthropic'
  return [{ cachePoint: { type: 'default', ...(hour && { ttl: '1h' }) } }]
}
