/** Request rows in memory, with their hourly sums and retention. */
import type { RequestRow, RetentionStore } from '../../../core/ports.ts'
import { stampOf } from '../../../lib/id.ts'
import type { Payment } from '../../rules/settlement.ts'
import { addRow, dimensionsOf, emptySum, type HourSum, placeOf } from '../../rules/usage.ts'
import { order, type Tables } from './tables.ts'

const BATCH = 500

/** Rows by id, each counted in the sums of its hour. */
export class RequestLog {
  readonly #tables: Tables

  constructor(tables: Tables) {
    this.#tables = tables
  }

  /** Within a transaction. False when the row exists. */
  add(row: RequestRow, payment: Payment): boolean {
    const { requests } = this.#tables
    if (requests.get(row.id)) return false
    requests.set(row.id, { row, payment })
    this.#count(row, payment, 1)
    return true
  }

  outcomeOf(id: string): RequestRow['outcome'] | undefined {
    return this.#tables.requests.get(id)?.row.outcome
  }

  /** Within a transaction: removes the row of an orphan; undefined when it is none. */
  takeOrphan(id: string): Payment | undefined {
    if (this.outcomeOf(id) !== 'orphaned') return undefined
    const { row, payment } = this.#tables.requests.delete(id)!
    this.#count(row, payment, -1)
    return payment
  }

  #count(row: RequestRow, payment: Payment, times: 1 | -1): void {
    const { hours, now } = this.#tables
    const dimensions = this.#placeOf(dimensionsOf(row))
    const id = JSON.stringify(dimensions)
    const sum = { ...(hours.get(id) ?? emptySum(dimensions)), updatedAt: now() }
    addRow(sum, row, payment, times)
    hours.set(id, sum)
  }

  #placeOf(dimensions: HourSum['dimensions']): HourSum['dimensions'] {
    const { hours } = this.#tables
    const [hour, , , keyId] = dimensions
    return placeOf(dimensions, {
      has: place => hours.get(JSON.stringify(place)) !== undefined,
      count: () => hours.filter(({ dimensions: [at, , , key] }) => at === hour && key === keyId).length,
    })
  }
}

/** Deletes at most `BATCH` rows at a time, and keeps their sums by organization. */
export const retentionStore = (tables: Tables): RetentionStore => ({
  prune: before =>
    tables.run(() => {
      const { requests, pruned } = tables
      const stamp = stampOf(before)
      const old = requests
        .filter(({ row }) => row.id < stamp && row.at < before)
        .sort((a, b) => order(a.row.id, b.row.id))
        .slice(0, BATCH)
      for (const { row, payment } of old) {
        requests.delete(row.id)
        const { orgId } = row
        const sum = pruned.get(orgId) ?? { orgId, requests: 0, cost: 0n, charged: 0n }
        const [cost, charged] = [sum.cost + (payment.cost ?? 0n), sum.charged + payment.charged]
        pruned.set(orgId, { orgId, requests: sum.requests + 1, cost, charged })
      }
      return old.length
    }),
})
