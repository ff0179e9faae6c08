/** Stores request rows and, in the same transaction, their hourly sums. */
import type { Statement } from 'better-sqlite3'
import type { Money } from '../../core/money.ts'
import type { RequestRow } from '../../core/ports.ts'
import { type CountedRow, columnsOf, countedOf } from '../rules/request-rows.ts'
import type { Payment } from '../rules/settlement.ts'
import { addRow, type Counted, dimensionsOf, emptySum, type HourSum, MAX_BY_MODEL, placeOf } from '../rules/usage.ts'
import { COSTS, COUNTS } from '../sql/sums.ts'
import type { Sqlite } from './open.ts'
import type { Participant, Writer } from './writer.ts'

type Column = keyof ReturnType<typeof columnsOf>
/** Columns of `requests`. */
const columns: readonly Column[] = [
  ...(['id', 'request_id', 'at', 'org_id', 'project_id', 'key_id', 'endpoint', 'requested_model'] as const),
  ...(['model', 'provider', 'source', 'status', 'outcome', 'error_code', 'streamed', 'cached', 'attempts'] as const),
  ...(['duration_ms', 'ttft_ms', 'prompt_tokens', 'completion_tokens', 'cache_read_tokens'] as const),
  ...(['cache_write_tokens', 'reasoning_tokens', 'other_usage', 'estimated', 'cost', 'funds', 'charged'] as const),
  ...(['storage', 'discount', 'tier', 'detail', 'end_user', 'tags'] as const),
]

/** Columns of `usage_hourly` that requests are added to, in the order of `beforeCommit`, and its primary key. */
const summed = [...COUNTS, ...COSTS, 'savings']
const place = ['hour', 'org_id', 'project_id', 'key_id', 'provider', 'model', 'source']

/** Payment of a deleted row. */
type Taken = Payment & { readonly cost: Money }

/** Rows of `requests`, and what they add to `usage_hourly`. Called within a transaction of the writer. */
export class RequestLog implements Participant {
  readonly #insert: Statement
  readonly #outcome: Statement<[string], RequestRow['outcome']>
  readonly #takeOrphan: Statement<[string], CountedRow>
  readonly #update: Statement
  readonly #upsert: Statement
  readonly #has: Statement<[...HourSum['dimensions']], number>
  readonly #count: Statement<[hour: number, orgId: string, projectId: string, keyId: string], number>
  readonly #now: () => number
  /** Additions of one transaction to `usage_hourly`, by dimensions; a busy hour has few of them. */
  readonly #sums = new Map<string, HourSum>()

  constructor(db: Sqlite, writer: Writer, now: () => number) {
    this.#now = now
    const marks = columns.map(() => '?').join(', ')
    this.#insert = db.prepare(
      `INSERT INTO requests (${columns.join(', ')}) VALUES (${marks}) ON CONFLICT (id) DO NOTHING`,
    )
    this.#outcome = db.prepare<[string], RequestRow['outcome']>('SELECT outcome FROM requests WHERE id = ?').pluck()
    this.#takeOrphan = db
      .prepare<[string], CountedRow>("DELETE FROM requests WHERE id = ? AND outcome = 'orphaned' RETURNING *")
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
    const named = columnsOf(row, payment)
    // Values by position: the driver takes 15 µs to look 35 of them up by name.
    const values: unknown[] = []
    for (const column of columns) values.push(named[column])
    if (this.#insert.run(values).changes === 0) return false
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
    const taken = { cost: row.cost ?? 0n, funds: row.funds, charged: row.charged }
    const counted = countedOf(row)
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
