/** Rows of requests as the ledger's functions take them, and what a transaction of the node adds of them. */
import type { Money } from '../../core/money.ts'
import type { Funds, RequestRow } from '../../core/ports.ts'
import { type CountedRow, columnsOf, countedOf } from '../rules/request-rows.ts'
import { billOf, chargedBy, type Payment } from '../rules/settlement.ts'
import { addRow, type Counted, dimensionsOf, emptySum, type HourSum, savedBy } from '../rules/usage.ts'
import type { Sql } from '../sql/sql.ts'
import { jsonOf } from './json.ts'

/** A row as `settlement_v1`. JSON has no bigint: amounts are texts. */
export function settlementOf(row: RequestRow, payment: Payment): object {
  const { cost, charged } = payment
  const savings = String(savedBy(cost ?? 0n, row.discount))
  const amounts = { cost: cost === null ? null : String(cost), charged: String(charged), storage: String(row.storage) }
  return Object.assign(columnsOf(row, payment), amounts, { savings })
}

/** How a row is paid for where its hold is open. */
export const paymentOf = (funds: Funds, row: RequestRow): Payment => ({
  cost: row.cost,
  funds,
  charged: chargedBy(billOf(funds, row)),
})

interface KnownRow extends CountedRow {
  readonly outcome: RequestRow['outcome']
}

/** Reads what became of a request; undefined when its row does not exist. */
export async function outcomeOf(sql: Sql, id: string): Promise<RequestRow['outcome'] | undefined> {
  const [row] = await sql.query<{ outcome: RequestRow['outcome'] }>('SELECT outcome FROM requests WHERE id = $1', [id])
  return row?.outcome
}

/** Adds rows within a transaction of the node, which has locked their holds. */
export class AddedRequests {
  /** Rows that are added already, as their bills are. */
  readonly #added: ReadonlySet<string>
  /** Rows that stood there before. */
  readonly #known: ReadonlyMap<string, KnownRow>
  readonly #taken = new Set<string>()
  readonly #again: object[] = []
  readonly #sums = new Map<string, HourSum>()

  private constructor(added: ReadonlySet<string>, known: ReadonlyMap<string, KnownRow>) {
    this.#added = added
    this.#known = known
  }

  static async insert(sql: Sql, rows: readonly (readonly [RequestRow, Funds])[]): Promise<AddedRequests> {
    if (rows.length === 0) return new AddedRequests(new Set(), new Map())
    const values = rows.map(([row, funds]) => settlementOf(row, paymentOf(funds, row)))
    const added = new Set((await sql.query<{ id: string }>(ADD, [jsonOf(values)])).map(({ id }) => id))
    const known = new Map<string, KnownRow>()
    // In order, as other transactions lock them.
    for (const id of rows.map(([row]) => row.id).sort()) {
      if (added.has(id) || known.has(id)) continue
      const [row] = await sql.query<KnownRow>('SELECT * FROM requests WHERE id = $1 FOR UPDATE', [id])
      if (row) known.set(id, row)
    }
    return new AddedRequests(added, known)
  }

  /** Counts a row; false when another one stands in its place. */
  add(row: RequestRow, payment: Payment): boolean {
    if (!this.#added.has(row.id)) {
      if (!this.#taken.has(row.id)) return false
      this.#again.push(settlementOf(row, payment))
    }
    this.#count(row, payment, 1)
    return true
  }

  /** Takes the row of an orphan out of the books; undefined when it is none. */
  takeOrphan(id: string): (Payment & { readonly cost: Money }) | undefined {
    const row = this.#known.get(id)
    if (row?.outcome !== 'orphaned' || this.#taken.has(id)) return undefined
    this.#taken.add(id)
    const taken = { cost: row.cost ?? 0n, funds: row.funds, charged: row.charged }
    this.#count(countedOf(row), taken, -1)
    return taken
  }

  /** Writes what has changed, and the sums. */
  async write(sql: Sql, now: number): Promise<void> {
    for (const id of this.#taken) await sql.query('DELETE FROM requests WHERE id = $1', [id])
    if (this.#again.length > 0) await sql.query(ADD, [jsonOf(this.#again)])
    if (this.#sums.size > 0) await sql.query(COUNT, [jsonOf([...this.#sums.values()].map(hourlyOf)), now])
  }

  #count(row: Counted, payment: Payment, times: 1 | -1): void {
    const dimensions = dimensionsOf(row)
    const key = dimensions.join('\0')
    const sum = this.#sums.get(key) ?? emptySum(dimensions)
    this.#sums.set(key, sum)
    addRow(sum, row, payment, times)
  }
}

const ADD = `
  SELECT x.id FROM unnest(add_requests_v1(
    ARRAY(SELECT r FROM json_populate_recordset(NULL::settlement_v1, $1::json) r)
  )) x`
const COUNT = `
  SELECT count_requests_v1(ARRAY(SELECT h FROM json_populate_recordset(NULL::hourly_v1, $1::json) h), $2::bigint)`

/** A sum as `hourly_v1`. */
function hourlyOf(sum: HourSum) {
  const [hour, org_id, project_id, key_id, provider, model, source] = sum.dimensions
  return {
    ...{ hour, org_id, project_id, key_id, provider, model, source },
    ...{ requests: sum.requests, errors: sum.errors, cached: sum.cached },
    ...{ input_tokens: sum.input, output_tokens: sum.output },
    ...{ cached_tokens: sum.cacheRead, reasoning_tokens: sum.reasoning },
    ...{ cost: String(sum.cost), credits_cost: String(sum.credits), byok_cost: String(sum.byok) },
    ...{ storage_cost: String(sum.storage), savings: String(sum.savings) },
  }
}
