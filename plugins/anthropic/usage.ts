/** Token counts of the Messages wire as usage axes. */
import { countIn, isObject, type Json, listIn, objectIn, type Usage } from '../../src/plugin.ts'
import { type Counts, UsageReports, usageBesideCache, writtenTokens } from '../shared/usage-reports.ts'

type Read = (counts: Json) => unknown

const splitOf = ({ cache_creation: split }: Json): Json => objectIn(split)

/** Tells whether a block is the result of one of the provider's own tools, which its model reads next. */
export const isOwnResult = ({ type }: Json): boolean => typeof type === 'string' && type.endsWith('_tool_result')

/** Joins the counts of one answer: the end of a stream may repeat, correct or omit what its start reported. */
export class UsageMeter {
  readonly #reports = new UsageReports(countsOf, usageOf)
  #searches = 0

  /** Adds a `usage` object; returns all counts reported so far. */
  add(report: unknown): Partial<Usage> {
    return isObject(report) ? this.#added(report) : {}
  }

  /**
   * Adds a result of the provider's own tools, which its reports count at the end alone; a search that failed is free.
   * Returns all counts so far.
   */
  addResult({ type, content }: Json): Partial<Usage> {
    if (type !== 'web_search_tool_result' || !Array.isArray(content)) return this.#added({})
    return this.#added({ server_tool_use: { web_search_requests: this.#searches + 1 } })
  }

  #added(report: Json): Partial<Usage> {
    const usage = this.#reports.add(report)!
    this.#searches = usage.web_search ?? 0
    return usage
  }
}

function countsOf(report: Json) {
  const { output_tokens_details: details, server_tool_use: served } = report
  const count = (read: Read) => countIn(cached(report, read))
  const input = total(report, 'input_tokens')
  const read = count(counts => counts.cache_read_input_tokens)
  const written1h = count(counts => splitOf(counts).ephemeral_1h_input_tokens)
  const written = writtenTokens(
    count(counts => counts.cache_creation_input_tokens),
    count(counts => splitOf(counts).ephemeral_5m_input_tokens),
    written1h,
  )
  // No prompt is empty: a later report of zeros alone means that it was not counted again.
  const isCounted = Boolean(input || read || written)
  return {
    input: isCounted ? input : undefined,
    read: isCounted ? read : undefined,
    written: isCounted ? written : undefined,
    written1h: isCounted ? written1h : undefined,
    zero: input === 0 ? input : undefined,
    output: total(report, 'output_tokens'),
    thinking: isObject(details) ? countIn(details.thinking_tokens) : undefined,
    searches: isObject(served) ? countIn(served.web_search_requests) : undefined,
  }
}

function usageOf(counts: Counts<keyof ReturnType<typeof countsOf>>): Partial<Usage> {
  const { zero, input = zero, output, read, written, written1h, thinking, searches } = counts
  const usage = usageBesideCache({ input, output, read, written, written1h })
  if (thinking !== undefined) usage.internal_reasoning = thinking
  if (searches !== undefined) usage.web_search = searches
  return usage
}

/** A turn compacted on the way reports its parts; its totals omit the compaction. A part may lack a count. */
function total(report: Json, field: string): number | undefined {
  const parts = partsOf(report)
  const sumOf = (type: string) =>
    parts.reduce((sum, part) => (part.type === type ? sum + (countIn(part[field]) ?? 0) : sum), 0)
  const own = countIn(report[field])
  const sum = Math.max(own ?? 0, sumOf('message')) + sumOf('compaction')
  return own === undefined && sum === 0 ? undefined : sum
}

/** Reads the cache counts. The parts of a message may omit them; they count only when there is no total. */
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
  const tier = objectIn(report).service_tier
  return tier === 'standard' ? 'default' : tier === 'priority' ? tier : undefined
}
