/** Token counts of the Converse wire as usage axes. */
import { countIn, isObject, type Json, listIn } from '../../src/plugin.ts'
import { UsageReports, usageBesideCache, writtenTokens } from '../shared/usage-reports.ts'

/** The reports of one answer. */
export const usageReports = () => new UsageReports(countsOf, usageBesideCache)

function countsOf(report: Json) {
  const total = countIn(report.cacheWriteInputTokens ?? report.cacheWriteInputTokenCount)
  const written1h = writtenFor(report.cacheDetails, '1h')
  return {
    input: countIn(report.inputTokens),
    output: countIn(report.outputTokens),
    read: countIn(report.cacheReadInputTokens ?? report.cacheReadInputTokenCount),
    written: writtenTokens(total, writtenFor(report.cacheDetails, '5m'), written1h),
    written1h,
  }
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
