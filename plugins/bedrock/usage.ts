/** Token counts of the Converse wire as usage axes. */
import { countIn, isObject, listIn, type Usage } from '../../src/plugin.ts'

/** The wire's input excludes cache reads and writes; the usage axis includes them. Only reported counts are present. */
export function usageOf(report: unknown): Partial<Usage> {
  if (!isObject(report)) return {}
  const input = countIn(report.inputTokens)
  const output = countIn(report.outputTokens)
  const read = countIn(report.cacheReadInputTokens ?? report.cacheReadInputTokenCount)
  const total = countIn(report.cacheWriteInputTokens ?? report.cacheWriteInputTokenCount)
  const short = writtenFor(report.cacheDetails, '5m')
  const hour = writtenFor(report.cacheDetails, '1h')
  const written = Math.max(total ?? 0, (short ?? 0) + (hour ?? 0))
  const usage: Partial<Usage> = {}
  if (input !== undefined) usage.prompt = input + (read ?? 0) + written
  if (read !== undefined) usage.input_cache_read = read
  if ((total ?? short) !== undefined) usage.input_cache_write = written - (hour ?? 0)
  if (hour !== undefined) usage.input_cache_write_1h = hour
  if (output !== undefined) usage.completion = output
  return usage
}

/** Tokens written to the cache for `ttl`; undefined when the report has no such entry. */
function writtenFor(details: unknown, ttl: string): number | undefined {
  let sum: number | undefined
  for (const detail of listIn(details)) {
    const tokens = isObject(detail) && detail.ttl === ttl ? countIn(detail.inputTokens) : undefined
    if (tokens !== undefined) sum = (sum ?? 0) + tokens
  }
  return sum
}

/** The served tier in the API's terms; undefined for tiers without an equivalent. */
export function tierOf(report: unknown): string | undefined {
  const type = isObject(report) ? report.type : undefined
  return type === 'default' || type === 'flex' || type === 'priority' ? type : undefined
}
