/** The bound on cache breakpoints. */
import { errors } from '../../src/plugin.ts'

const MAX_BREAKPOINTS = 4

/** Throws 400 when more blocks than the wire takes have a `cache_control`. What is no list of blocks counts nothing. */
export function checkBreakpoints(...lists: readonly unknown[]): void {
  let count = 0
  for (const list of lists) count += marksIn(list)
  if (count <= MAX_BREAKPOINTS) return
  const allowed = `at most ${MAX_BREAKPOINTS} cache_control breakpoints are allowed over tools, system and messages`
  throw errors.invalidParameters(`This request sets ${count} cache_control breakpoints; ${allowed}.`, 'cache_control')
}

/** Whether any block has one. */
export const hasBreakpoints = (...lists: readonly unknown[]): boolean => lists.some(list => marksIn(list) > 0)

/** Counts the marked blocks of a list, and of the lists that they hold. Native blocks may hold anything. */
function marksIn(list: unknown): number {
  if (!Array.isArray(list)) return 0
  let count = 0
  for (const block of list as readonly ({ cache_control?: unknown; content?: unknown } | null)[]) {
    if (block?.cache_control) count += 1
    count += marksIn(block?.content)
  }
  return count
}
