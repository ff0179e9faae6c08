/** Keeps request rows, and with each row, in the same transaction, the hourly sums. */
import type { Statement } from 'better-sqlite3'
import type { Money } from '../../core/money.ts'
import type { RequestRow } from '../../core/ports.ts'
import type { Axis, Usage } from '../../core/usage.ts'
import type { Sqlite } from './open.ts'

const HOUR_MS = 3_600_000
export const hourOf = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS

/** Axes with a column of their own. */
const columns: readonly Axis[] = ['prompt', 'completion', 'input_cache_read', 'input_cache_write', 'internal_reasoning']

export class RequestLog {
  readonly #insert: Statement
  readonly #sum: Statement

  constructor(db: Sqlite) {
    this.#insert = db.prepare(`
      INSERT INTO requests (
        id, request_id, at, org_id, project_id, key_id, endpoint, requested_model, model, provider, source,
        status, outcome, error_code, streamed, cached, attempts, duration_ms, ttft_ms,
        prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, other_usage,
        estimated, cost
      ) VALUES (
        @id, @requestId, @at, @orgId, @projectId, @keyId, @endpoint, @requestedModel, @model, @provider, @source,
        @status, @outcome, @errorCode, @streamed, @cached, @attempts, @durationMs, @ttftMs,
        @prompt, @completion, @cacheRead, @cacheWrite, @reasoning, @otherUsage,
        @estimated, @cost
      ) ON CONFLICT (id) DO NOTHING`)
    this.#sum = db.prepare(`
      INSERT INTO usage_hourly (
        hour, org_id, project_id, key_id, provider, model, source,
        requests, errors, cached, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost
      ) VALUES (
        @hour, @orgId, @projectId, @keyId, @provider, @model, @source,
        1, @error, @cached, @input, @output, @cacheRead, @reasoning, @cost
      ) ON CONFLICT DO UPDATE SET
        requests = requests + 1,
        errors = errors + excluded.errors,
        cached = cached + excluded.cached,
        input_tokens = input_tokens + excluded.input_tokens,
        output_tokens = output_tokens + excluded.output_tokens,
        cached_tokens = cached_tokens + excluded.cached_tokens,
        reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
        cost = cost + excluded.cost`)
  }

  /** Call within a transaction. `cost` is what was charged. Returns false when the row was there already. */
  add(row: RequestRow, cost: Money | null): boolean {
    const prompt = count(row.usage.prompt)
    const completion = count(row.usage.completion)
    const cacheRead = count(row.usage.input_cache_read)
    const reasoning = count(row.usage.internal_reasoning)
    const cached = row.cached ? 1 : 0
    const { changes } = this.#insert.run({
      ...row,
      at: Math.floor(row.at),
      streamed: row.streamed ? 1 : 0,
      cached,
      estimated: row.estimated ? 1 : 0,
      durationMs: count(row.durationMs) ?? 0,
      ttftMs: count(row.ttftMs ?? undefined),
      prompt,
      completion,
      cacheRead,
      cacheWrite: count(row.usage.input_cache_write),
      reasoning,
      otherUsage: otherUsage(row.usage),
      cost,
    })
    if (changes === 0) return false
    this.#sum.run({
      hour: hourOf(row.at),
      orgId: row.orgId,
      projectId: row.projectId,
      keyId: row.keyId,
      provider: row.provider ?? '',
      model: row.model ?? '',
      source: row.source ?? '',
      error: row.outcome === 'error' || row.outcome === 'orphaned' ? 1 : 0,
      cached,
      input: prompt ?? 0,
      output: completion ?? 0,
      cacheRead: cacheRead ?? 0,
      reasoning: reasoning ?? 0,
      cost: cost ?? 0n,
    })
    return true
  }
}

/** Strict columns refuse fractions, and a charge must not fail on a provider's odd number. */
const count = (value: number | undefined): number | null =>
  value !== undefined && Number.isFinite(value) ? Math.round(value) : null

function otherUsage(usage: Usage): string | null {
  const rest = Object.entries(usage).filter(([axis]) => !columns.includes(axis as Axis))
  return rest.length > 0 ? JSON.stringify(Object.fromEntries(rest)) : null
}
