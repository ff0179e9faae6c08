/** Recovers the holds of dead nodes, and rows that the database could not take for a while. */
import { byCheckpoint, isCharged, lostRequest } from '../rules/holds.ts'
import { JOBS_OWNER } from '../rules/jobs.ts'
import { GRACE_MS, orphanRow, ownHold } from '../rules/settlement.ts'
import type { Spool, Spooled } from '../spool.ts'
import { isDataError, type PostgresSql } from '../sql/postgres.ts'
import type { Sql } from '../sql/sql.ts'
import { type End, endAll, endOf, type LockedHold } from './holds.ts'
import { LIVING, type Nodes } from './nodes.ts'
import { outcomeOf } from './requests.ts'

const ORPHANS_PER_TRANSACTION = 200

interface RecoveryParts {
  readonly sql: PostgresSql
  readonly nodes: Nodes
  readonly spool: Spool
  now(sql: Sql): Promise<number>
  readonly warn: (error: unknown) => void
}

/** Enters spooled rows and settles orphans. */
export class Recovery {
  readonly #parts: RecoveryParts

  constructor(parts: RecoveryParts) {
    this.#parts = parts
  }

  /** Returns how many holds were orphans. */
  async run(): Promise<number> {
    const { nodes, now, spool, sql, warn } = this.#parts
    // Before the sweep, or an orphan would temporarily replace a row that is known.
    await spool.drain(await nodes.living(sql, await now(sql)), rows => this.#enterAll(rows)).catch(warn)
    let count = 0
    for (let found = ORPHANS_PER_TRANSACTION; found === ORPHANS_PER_TRANSACTION; count += found)
      found = await this.#sweep()
    return count
  }

  /** Turns some holds of dead nodes into orphans. */
  async #sweep(): Promise<number> {
    return await this.#parts.sql.transaction(async sql => {
      const now = await this.#parts.now(sql)
      const { nodes } = this.#parts
      const found = await sql.query<LockedHold>(ORPHANS, [nodes.id, now, JOBS_OWNER, now - GRACE_MS])
      const ends: End[] = []
      for (const hold of [...found].sort(byCheckpoint)) {
        // Another attempt or process may have ended it.
        const isDue = isCharged(await outcomeOf(sql, hold.request_id), hold)
        const isListed = ends.some(({ row }) => row?.id === hold.request_id)
        ends.push(endOf(hold, isDue && !isListed ? orphanRow(lostRequest(hold)) : undefined))
      }
      if (ends.length > 0) await endAll(sql, ends, now)
      await nodes.forgetDead(sql, now)
      // Writes each time, so that a probe notices a database that takes no writes.
      await nodes.beat(sql)
      return found.length
    })
  }

  /** Enters spooled rows; returns those that the database refuses for their values. */
  async #enterAll(rows: readonly Spooled[]): Promise<Spooled[]> {
    const refused: Spooled[] = []
    for (const row of rows) {
      try {
        await this.#parts.sql.transaction(sql => this.#enter(sql, row))
      } catch (cause) {
        if (!isDataError(cause)) throw cause
        this.#parts.warn(new Error(`The row of request ${row.id} cannot be entered and is set aside.`, { cause }))
        refused.push(row)
      }
    }
    return refused
  }

  /**
   * Settles a request whose row was spooled, unless it is settled. A row that names no hold belongs to a caller with its
   * own key; holds of other attempts are those whose release failed.
   */
  async #enter(sql: Sql, { ends: named, ...row }: Spooled): Promise<void> {
    const holds = await sql.query<LockedHold>(OF_REQUEST, [row.id, named?.id ?? ''])
    const outcome = await outcomeOf(sql, row.id)
    if (outcome !== undefined && outcome !== 'orphaned') return
    const attempts = holds.filter(hold => hold.request_id === row.id)
    attempts.sort((a, b) => Number(a.created_at - b.created_at))
    // A part of a session is recorded under another id than that of its hold's request.
    const own = ownHold(attempts, named, row) ?? holds.find(({ id }) => id === named?.id)
    const { funds = 'byok', budgets = null } = named ?? {}
    const open = { orgId: row.orgId, amount: 0n, funds, budgets }
    const others = attempts.filter(hold => hold !== own).map(hold => endOf(hold))
    const ends = [own ? endOf(own, row) : { id: undefined, open, row }, ...others]
    const [result] = await endAll(sql, ends, await this.#parts.now(sql))
    if (result && 'error' in result) throw result.error
  }
}

const ORPHANS = `
  SELECT * FROM holds
  WHERE owner <> $3 AND (owner NOT IN (${LIVING}) OR expires_at < $4)
  ORDER BY id LIMIT ${ORPHANS_PER_TRANSACTION} FOR UPDATE SKIP LOCKED`
const OF_REQUEST = 'SELECT * FROM holds WHERE request_id = $1 OR id = $2 ORDER BY id FOR UPDATE'
