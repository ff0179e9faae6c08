/** Rows of `requests`, which both databases keep in the same columns. */
import type { Funds, RequestRow } from '../../core/ports.ts'
import type { Payment } from './settlement.ts'
import { type Counted, otherUsage, wholeNumber } from './usage.ts'

/** Returns the values of a row by column, flags as 0 and 1, amounts in nano-USD. */
export const columnsOf = (row: RequestRow, { cost, funds, charged }: Payment) => ({
  id: row.id,
  request_id: row.requestId,
  at: Math.floor(row.at),
  org_id: row.orgId,
  project_id: row.projectId,
  key_id: row.keyId,
  endpoint: row.endpoint,
  requested_model: row.requestedModel,
  model: row.model,
  provider: row.provider,
  source: row.source,
  status: row.status,
  outcome: row.outcome,
  error_code: row.errorCode,
  streamed: row.streamed ? 1 : 0,
  cached: row.cached ? 1 : 0,
  attempts: row.attempts,
  duration_ms: wholeNumber(row.durationMs) ?? 0,
  ttft_ms: wholeNumber(row.ttftMs ?? undefined),
  prompt_tokens: wholeNumber(row.usage.prompt),
  completion_tokens: wholeNumber(row.usage.completion),
  cache_read_tokens: wholeNumber(row.usage.input_cache_read),
  cache_write_tokens: wholeNumber(row.usage.input_cache_write),
  reasoning_tokens: wholeNumber(row.usage.internal_reasoning),
  other_usage: otherUsage(row.usage),
  estimated: row.estimated ? 1 : 0,
  cost,
  funds,
  charged,
  storage: row.storage,
  discount: row.discount,
  tier: row.tier,
  detail: row.detail ? JSON.stringify(row.detail) : null,
  end_user: row.endUser ?? null,
  tags: row.tags ? JSON.stringify(row.tags) : null,
})

/** The columns of a row that its sums and its payment depend on. */
export interface CountedRow {
  readonly at: bigint
  readonly org_id: string
  readonly project_id: string
  readonly key_id: string
  readonly provider: string | null
  readonly model: string | null
  readonly source: string | null
  readonly cached: bigint | boolean
  readonly prompt_tokens: bigint | null
  readonly completion_tokens: bigint | null
  readonly cache_read_tokens: bigint | null
  readonly reasoning_tokens: bigint | null
  readonly cost: bigint | null
  readonly funds: Funds
  readonly charged: bigint
  readonly storage: bigint
  readonly discount: bigint
}

/** Returns what an orphan's row added to its sums. */
export const countedOf = (row: CountedRow): Counted => ({
  at: Number(row.at),
  orgId: row.org_id,
  projectId: row.project_id,
  keyId: row.key_id,
  provider: row.provider,
  model: row.model,
  source: row.source,
  outcome: 'orphaned',
  cached: Boolean(row.cached),
  usage: {
    prompt: Number(row.prompt_tokens ?? 0n),
    completion: Number(row.completion_tokens ?? 0n),
    input_cache_read: Number(row.cache_read_tokens ?? 0n),
    internal_reasoning: Number(row.reasoning_tokens ?? 0n),
  },
  storage: row.storage,
  discount: Number(row.discount),
})
