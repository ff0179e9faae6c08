/** Reads the end of an answer: its reason, token counts as usage axes, and the served tier. */
import {
  type ChatRequest,
  countIn,
  type FinishReason,
  isObject,
  type Json,
  listIn,
  objectIn,
  type WireFields,
} from '../../src/plugin.ts'
import { stopEnding } from '../shared/stops.ts'
import { UsageReports, usageBesideCache, writtenTokens } from '../shared/usage-reports.ts'

interface Ending {
  readonly reason: FinishReason
  readonly ending?: WireFields
}

/** `calls`: those of the answer. Messages clients read in `ending` which stop sequence of `request` ended it. */
export function endingOf(
  stopReason: string | undefined,
  calls: number,
  request: Readonly<ChatRequest> | undefined,
): Ending {
  const ending = stopReason === 'stop_sequence' ? stopEnding(request) : undefined
  return { reason: finishReasonOf(stopReason, calls), ...(ending && { ending }) }
}

/** `calls` decides between stop and tool_calls (C10): an answer given by tool is text, not a call. */
function finishReasonOf(stopReason: string | undefined, calls: number): FinishReason {
  switch (stopReason) {
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length'
    case 'content_filtered':
    case 'guardrail_intervened':
    case 'refusal':
      return 'content_filter'
    default:
      return calls > 0 ? 'tool_calls' : 'stop'
  }
}

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
  const type = objectIn(report).type
  return type === 'default' || type === 'flex' || type === 'priority' ? type : undefined
}
