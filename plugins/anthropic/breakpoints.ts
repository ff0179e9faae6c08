/** Cache breakpoints of a body: their limit, and how long the longest of them keeps what it ends. */
import { type CacheMark, errors, isObject, type Json } from '../../src/plugin.ts'

const MAX_BREAKPOINTS = 4

/** Throws 400 for more breakpoints than the wire allows. */
export function checkBreakpoints(count: number): void {
  if (count <= MAX_BREAKPOINTS) return
  const allowed = `at most ${MAX_BREAKPOINTS} cache_control breakpoints are allowed over tools, system and messages`
  throw errors.invalidParameters(`This request sets ${count} cache_control breakpoints; ${allowed}.`, 'cache_control')
}

/** Tools and blocks with a `cache_control`. Values that are not lists of blocks count as none. */
export function breakpointsIn(...lists: readonly unknown[]): number {
  let count = 0
  for (const list of lists) count += marksIn(list)
  return count
}

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

/** Members with names of the client's choice, and no blocks. */
const OPAQUE: ReadonlySet<string> = new Set(['input', 'input_examples', 'input_schema', 'schema'])

/** The longest of all marks in a body, wherever they stand: its own, and those of tools and blocks of any type. */
export function cacheMarkIn(value: unknown): CacheMark | undefined {
  let longest: CacheMark | undefined
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && longest !== '1h'; at++) longest = cacheMarkIn(value[at]) ?? longest
  } else if (isObject(value)) {
    for (const name in value) {
      if (OPAQUE.has(name)) continue
      const member = value[name]
      longest = (name === 'cache_control' ? lifetimeOf(member) : cacheMarkIn(member)) ?? longest
      if (longest === '1h') break
    }
  }
  return longest
}

/** A copy of a body whose marks last five minutes. Members of the client's choice are shared. */
export function withoutHours<T>(value: T): T {
  if (Array.isArray(value)) return value.map(withoutHours) as T
  if (!isObject(value)) return value
  const copy: Json = {}
  for (const name in value) {
    const member = value[name]
    if (name === 'cache_control' && lifetimeOf(member) === '1h') copy[name] = { type: 'ephemeral' }
    else copy[name] = OPAQUE.has(name) ? member : withoutHours(member)
  }
  return copy as T
}

/** Returns the more expensive lifetime when the marker names none. */
function lifetimeOf(control: unknown): CacheMark | undefined {
  if (!isObject(control)) return undefined
  return control.ttl == null || control.ttl === '5m' ? '5m' : '1h'
}
