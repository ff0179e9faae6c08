/** Stores request rows and, in the same transaction, their hourly sums. */
import type { Statement } from 'better-sqlite3'
import type { Money } from '../../core/money.ts'
import type { Funds, RequestRow } from '../../core/ports.ts'
import type { Usage } from '../../core/usage.ts'
import type { Payment } from '../rules/settlement.ts'
import {
  addRow,
  type Counted,
  dimensionsOf,
  emptySum,
  type HourSum,
  MAX_BY_MODEL,
  otherUsage,
  placeOf,
  wholeNumber,
} from '../rules/usage.ts'
import type { Sqlite } from './open.ts'
import type { Participant, Writer } from './writer.ts'

/** Columns of `requests`, in the order of `valuesOf`. */
const names = `id, request_id, at, org_id, project_id, key_id, endpoint, requested_model, model, provider, source,
  status, outcome, error_code, streamed, cached, attempts, duration_ms, ttft_ms,
  prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, other_usage,
  estimated, cost, funds, charged, storage, discount, tier, detail, end_user, tags`

/** Columns of `usage_hourly` that requests are added to, in the order of `beforeCommit`, and its primary key. */
const summed = [
  ...['requests', 'errors', 'cached', 'input_tokens', 'output_tokens', 'cached_tokens', 'reasoning_tokens'],
  ...['cost', 'credits_cost', 'byok_cost', 'storage_cost', 'savings'],
]
const place = ['hour', 'org_id', 'project_id', 'key_id', 'provider', 'model', 'source']

/** Payment of a deleted row. */
type Taken = Payment & { readonly cost: Money }

/** Columns for `Counted` and `Taken`. */
interface OrphanRow {
  at: bigint
  org_id: string
  project_id: string
  key_id: string
  provider: string | null
  model: string | null
  source: string | null
  cached: bigint
  prompt_tokens: bigint | null
  completion_tokens: bigint | null
  cache_read_tokens: bigint | null
  reasoning_tokens: bigint | null
  cost: bigint | null
  funds: Funds
  charged: bigint
  storage: bigint
  discount: bigint
}

/** Rows of `requests`, and what they add to `usage_hourly`. Called within a transaction of the writer. */
export class RequestLog implements Participant {
  readonly #insert: Statement
  readonly #outcome: Statement<[string], RequestRow['outcome']>
  readonly #takeOrphan: Statement<[string], OrphanRow>
  readonly #update: Statement
  readonly #upsert: Statement
  readonly #has: Statement<[...HourSum['dimensions']], number>
  readonly #count: Statement<[hour: number, orgId: string, projectId: string, keyId: string], number>
  readonly #now: () => number
  /** Additions of one transaction to `usage_hourly`, by dimensions; a busy hour has few of them. */
  readonly #sums = new Map<string, HourSum>()

  constructor(db: Sqlite, writer: Writer, now: () => number) {
    this.#now = now
    const marks = names.replace(/\w+/g, '?')
    this.#insert = db.prepare(`INSERT INTO requests (${names}) VALUES (${marks}) ON CONFLICT (id) DO NOTHING`)
    this.#outcome = db.prepare<[string], RequestRow['outcome']>('SELECT outcome FROM requests WHERE id = ?').pluck()
    this.#takeOrphan = db
      .prepare<[string], OrphanRow>("DELETE FROM requests WHERE id = ? AND outcome = 'orphaned' RETURNING *")
      .safeIntegers()
    const added = summed.map(name => `${name} = ${name} + `)
    this.#update = db.prepare(`
      UPDATE usage_hourly SET ${added.map(sum => `${sum}?`).join(', ')}, updated_at = max(updated_at, ?)
      WHERE ${place.map(name => `${name} = ?`).join(' AND ')}`)
    this.#upsert = db.prepare(`
      INSERT INTO usage_hourly (${[...summed, 'updated_at', ...place].join(', ')})
      VALUES (${[...summed, 'updated_at', ...place].fill('?').join(', ')})
      ON CONFLICT DO UPDATE SET ${summed.map((name, at) => `${added[at]}excluded.${name}`).join(', ')},
        updated_at = max(updated_at, excluded.updated_at)`)
    const ofKey = 'FROM usage_hourly WHERE hour = ? AND org_id = ? AND project_id = ? AND key_id = ?'
    this.#has = db
      .prepare<[...HourSum['dimensions']], number>(`SELECT 1 ${ofKey} AND provider = ? AND model = ? AND source = ?`)
      .pluck()
    this.#count = db
      .prepare<[number, string, string, string], number>(
        `SELECT count(*) FROM (SELECT 1 ${ofKey} LIMIT ${MAX_BY_MODEL})`,
      )
      .pluck()
    writer.join(this)
  }

  /** Within a transaction. Returns false when the row exists. */
  add(row: RequestRow, payment: Payment): boolean {
    if (this.#insert.run(...valuesOf(row, payment)).changes === 0) return false
    addRow(this.#sumOf(row), row, payment, 1)
    return true
  }

  /** Undefined when the row does not exist. */
  outcomeOf(id: string): RequestRow['outcome'] | undefined {
    return this.#outcome.get(id)
  }

  /** Within a transaction. Deletes the row of an orphan; undefined when it is none. */
  takeOrphan(id: string): Taken | undefined {
    const row = this.#takeOrphan.get(id)
    if (!row) return undefined
    const { org_id: orgId, project_id: projectId, key_id: keyId, provider, model, source } = row
    const { storage, funds, charged } = row
    const discount = Number(row.discount)
    const usage: Usage = {
      prompt: Number(row.prompt_tokens ?? 0n),
      completion: Number(row.completion_tokens ?? 0n),
      input_cache_read: Number(row.cache_read_tokens ?? 0n),
      internal_reasoning: Number(row.reasoning_tokens ?? 0n),
    }
    const taken = { cost: row.cost ?? 0n, funds, charged }
    const dimensions = { at: Number(row.at), orgId, projectId, keyId, provider, model, source }
    const counted: Counted = { ...dimensions, outcome: 'orphaned', cached: row.cached !== 0n, usage, storage, discount }
    addRow(this.#sumOf(counted), counted, taken, -1)
    return taken
  }

  beforeCommit(): void {
    if (this.#sums.size === 0) return
    const now = this.#now()
    for (const sum of this.#sums.values()) {
      const { dimensions, requests, errors, cached, input, output, cacheRead, reasoning } = sum
      const { cost, credits, byok, storage, savings } = sum
      const counts = [requests, errors, cached, input, output, cacheRead, reasoning]
      const values = [...counts, cost, credits, byok, storage, savings, now]
      if (this.#update.run(values, dimensions).changes === 0) this.#upsert.run(values, this.#placeOf(dimensions))
    }
    this.#sums.clear()
  }

  undone(): void {
    this.#sums.clear()
  }

  #placeOf(dimensions: HourSum['dimensions']): HourSum['dimensions'] {
    const [hour, orgId, projectId, keyId] = dimensions
    return placeOf(dimensions, {
      has: place => this.#has.get(...place) !== undefined,
      count: () => this.#count.get(hour, orgId, projectId, keyId)!,
    })
  }

  #sumOf(row: Counted): HourSum {
    const dimensions = dimensionsOf(row)
    const key = dimensions.join('\0')
    let sum = this.#sums.get(key)
    if (!sum) {
      sum = emptySum(dimensions)
      this.#sums.set(key, sum)
    }
    return sum
  }
}

const valuesOf = (row: RequestRow, { cost, funds, charged }: Payment): unknown[] => [
  row.id,
  row.requestId,
  Math.floor(row.at),
  row.orgId,
  row.projectId,
  row.keyId,
  row.endpoint,
  row.requestedModel,
  row.model,
  row.provider,
  row.source,
  row.status,
  row.outcome,
  row.errorCode,
  row.streamed ? 1 : 0,
  row.cached ? 1 : 0,
  row.attempts,
  wholeNumber(row.durationMs) ?? 0,
  wholeNumber(row.ttftMs ?? undefined),
  wholeNumber(row.usage.prompt),
  wholeNumber(row.usage.completion),
  wholeNumber(row.usage.input_cache_read),
  wholeNumber(row.usage.input_cache_write),
  wholeNumber(row.usage.internal_reasoning),
  otherUsage(row.usage),
  row.estimated ? 1 : 0,
  cost,
  funds,
  charged,
  row.storage,
  row.discount,
  row.tier,
  row.detail ? JSON.stringify(row.detail) : null,
  row.endUser ?? null,
  row.tags ? JSON.stringify(row.tags) : null,
]
