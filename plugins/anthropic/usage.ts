/** Token counts of the Messages wire as usage axes. */
import { isObject, type Json, listIn, type Usage } from '../../src/plugin.ts'

type Counter = 'input' | 'read' | 'written' | 'written5m' | 'written1h' | 'output' | 'thinking' | 'searches'

type Read = (counts: Json) => unknown

const splitOf = ({ cache_creation: split }: Json): Json => (isObject(split) ? split : {})
const CACHE: readonly (readonly [Counter, Read])[] = [
  ['read', counts => counts.cache_read_input_tokens],
  ['written', counts => counts.cache_creation_input_tokens],
  ['written5m', counts => splitOf(counts).ephemeral_5m_input_tokens],
  ['written1h', counts => splitOf(counts).ephemeral_1h_input_tokens],
]

/** What a tool of the provider has returned, which its model reads next. */
export const isOwnResult = ({ type }: Json): boolean => typeof type === 'string' && type.endsWith('_tool_result')

/**
 * Counts arrive in parts: the end of a stream may repeat, raise or omit what its start reported. They are cumulative,
 * so the largest of each counts.
 */
export class UsageMeter {
  readonly #counts: Partial<Record<Counter, number>> = {}

  /** Adds a `usage` object; returns all counts reported so far. */
  add(report: unknown): Partial<Usage> {
    if (!isObject(report)) return {}
    const { output_tokens_details: details, server_tool_use: served } = report
    this.#raise('input', total(report, 'input_tokens'))
    this.#raise('output', total(report, 'output_tokens'))
    for (const [counter, read] of CACHE) this.#raise(counter, cached(report, read))
    if (isObject(details)) this.#raise('thinking', details.thinking_tokens)
    if (isObject(served)) this.#raise('searches', served.web_search_requests)
    return this.#usage()
  }

  /**
   * Adds a result of the provider's own tools, which its reports count at the end alone; a search that failed is free.
   * Returns all counts so far.
   */
  addResult({ type, content }: Json): Partial<Usage> {
    if (type === 'web_search_tool_result' && Array.isArray(content)) {
      this.#raise('searches', (this.#counts.searches ?? 0) + 1)
    }
    return this.#usage()
  }

  #raise(counter: Counter, value: unknown): void {
    if (typeof value === 'number' && value > (this.#counts[counter] ?? -1)) this.#counts[counter] = value
  }

  /**
   * The wire's input excludes cache reads and writes; the usage axis includes them. Only reported counts are present.
   */
  #usage(): Partial<Usage> {
    const { input, read, written, written5m, written1h, output, thinking, searches } = this.#counts
    const allWritten = Math.max(written ?? 0, (written5m ?? 0) + (written1h ?? 0))
    const usage: Partial<Usage> = {}
    if (input !== undefined) usage.prompt = input + (read ?? 0) + allWritten
    if (read !== undefined) usage.input_cache_read = read
    if ((written ?? written5m) !== undefined) usage.input_cache_write = allWritten - (written1h ?? 0)
    if (written1h !== undefined) usage.input_cache_write_1h = written1h
    if (output !== undefined) usage.completion = output
    if (thinking !== undefined) usage.internal_reasoning = thinking
    if (searches !== undefined) usage.web_search = searches
    return usage
  }
}

/** A turn compacted on the way reports its parts; its totals omit the compaction. */
function total(report: Json, field: string): unknown {
  const parts = partsOf(report)
  const own = parts.filter(part => part.type === 'message' || part.type === 'compaction')
  if (own.length === 0) return report[field]
  let sum = 0
  for (const part of own) {
    const value = part[field]
    if (typeof value === 'number') sum += value
  }
  return sum
}

/** The same for cache counts: the parts of a message may omit them and count only without a total. */
function cached(report: Json, read: Read): unknown {
  const whole = read(report)
  const isTotal = typeof whole === 'number'
  const others = partsOf(report).filter(({ type }) => type === 'compaction' || (type === 'message' && !isTotal))
  const counts = [whole, ...others.map(read)].filter(count => typeof count === 'number')
  return counts.length > 0 ? counts.reduce((sum, count) => sum + count) : undefined
}

/** When another model took over (a fallback), the totals apply and the parts do not count. */
function partsOf({ iterations }: Json): Json[] {
  const parts = listIn(iterations).filter(isObject)
  return parts.some(({ type }) => type === 'fallback_message') ? [] : parts
}

/** The served tier in the API's terms; undefined for tiers without an equivalent. */
export function tierOf(report: unknown): string | undefined {
  const tier = isObject(report) ? report.service_tier : undefined
  return tier === 'standard' ? 'default' : tier === 'priority' ? tier : undefined
}
