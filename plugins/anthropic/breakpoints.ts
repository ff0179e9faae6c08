/** The limit of cache breakpoints. */
import { errors } from '../../src/plugin.ts'

const MAX_BREAKPOINTS = 4

/**
 * Throws 400 when more tools and blocks than the wire allows have a `cache_control`. Values that are not lists of blocks count as
 * none.
 */
export function checkBreakpoints(...lists: readonly unknown[]): void {
  let count = 0
  for (const list of lists) count += marksIn(list)
  if (count <= MAX_BREAKPOINTS) return
  const allowed = `at most ${MAX_BREAKPOINTS} cache_control breakpoints are allowed over tools, system and messages`
  throw errors.invalidParameters(`This request sets ${count} cache_control breakpoints; ${allowed}.`, 'cache_control')
}

/** Whether any block has a breakpoint. */
export const hasBreakpoints = (...lists: readonly unknown[]): boolean => lists.some(list => marksIn(list) > 0)

/** Counts the marked blocks of a list and of the lists nested in it. Native blocks may contain anything. */
function marksIn(list: unknown): number {
  if (!Array.isArray(list)) return 0
  let count = 0
  for (const block of list as readonly ({ cache_control?: unknown; content?: unknown } | null)[]) {
    if (block?.cache_control) count += 1
    count += marksIn(block?.content)
  }
  return count
}
