/** Deletes old request rows, and limits of end users that have not come since; keeps sums: ledger and hourly sums stay. */
import type { Statement } from 'better-sqlite3'
import type { RetentionStore } from '../../core/ports.ts'
import { stampOf } from '../../lib/id.ts'
import { dropEndUserLimits } from '../rules/labels.ts'
import type { Sqlite } from './open.ts'
import type { Writer } from './writer.ts'

/** Rows per transaction, which takes some milliseconds. */
const ROWS_PER_TRANSACTION = 500

interface Dropped {
  org_id: string
  cost: bigint | null
  charged: bigint
}

/** Deletes at most `ROWS_PER_TRANSACTION` rows of `requests` at a time, and adds them to `pruned`. */
export class SqliteRetention implements RetentionStore {
  readonly #db: Sqlite
  readonly #writer: Writer
  readonly #drop: Statement<{ stamp: string; before: number }, Dropped>
  readonly #remember: Statement

  constructor(db: Sqlite, writer: Writer) {
    this.#db = db
    this.#writer = writer
    // Ids begin with their time, so old rows are at one end of the tree.
    this.#drop = db
      .prepare<{ stamp: string; before: number }, Dropped>(`
        DELETE FROM requests WHERE id IN (
          SELECT id FROM requests WHERE id < @stamp AND at < @before ORDER BY id LIMIT ${ROWS_PER_TRANSACTION}
        )
        RETURNING org_id, cost, charged`)
      .safeIntegers()
    this.#remember = db.prepare(`
      INSERT INTO pruned (org_id, requests, cost, charged) VALUES (?, ?, ?, ?)
      ON CONFLICT (org_id) DO UPDATE SET
        requests = requests + excluded.requests,
        cost = cost + excluded.cost,
        charged = charged + excluded.charged`)
  }

  prune(before: number): Promise<number> {
    return this.#writer.run(() => {
      const sums = new Map<string, { requests: number; cost: bigint; charged: bigint }>()
      const dropped = this.#drop.all({ stamp: stampOf(before), before })
      for (const { org_id, cost, charged } of dropped) {
        const sum = sums.get(org_id) ?? { requests: 0, cost: 0n, charged: 0n }
        sum.requests++
        sum.cost += cost ?? 0n
        sum.charged += charged
        sums.set(org_id, sum)
      }
      for (const [org, { requests, cost, charged }] of sums) this.#remember.run(org, requests, cost, charged)
      return dropped.length || this.#db.prepare(dropEndUserLimits(before, ROWS_PER_TRANSACTION)).run().changes
    })
  }
}
