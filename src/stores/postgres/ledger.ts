/**
 * The ledger on PostgreSQL, which alone decides: a node keeps nothing but the calls that wait. Most holds and their ends
 * are functions of the database, for many calls at once; the others are transactions that compute with the rules.
 */
import type pg from 'pg'
import type { Money } from '../../core/money.ts'
import type { Exhausted, Hold, HoldRequest, Ledger, Progress, RequestRow } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import type { MoneyState } from '../../limits/alerts.ts'
import { written } from '../rules/holds.ts'
import { JOBS_OWNER } from '../rules/jobs.ts'
import { gone, limitsText, nothingLeft } from '../rules/reservations.ts'
import { isPlan } from '../rules/settlement.ts'
import { Spool } from '../spool.ts'
import type { JobLedger } from '../sql/jobs/table.ts'
import { isDataError, isLost, PostgresSql } from '../sql/postgres.ts'
import type { Sql } from '../sql/sql.ts'
import { Batches, type Outcome } from './batches.ts'
import { askedOf, flush, standingsOf, type Telling, type Told } from './flush.ts'
import {
  beginLimits,
  type End,
  endAll,
  endOf,
  extendAll,
  lockHolds,
  type More,
  reserveAll,
  wantedRow,
} from './holds.ts'
import { jsonOf } from './json.ts'
import { type NodeOptions, Nodes } from './nodes.ts'
import { Recovery } from './recovery.ts'
import { outcomeOf, paymentOf, settlementOf } from './requests.ts'

interface LedgerOptions extends NodeOptions {
  /** Prefix of the files that keep rows while the database cannot take them. */
  readonly spool?: string | undefined
}
interface Settling extends Telling {
  readonly row: RequestRow
}
/** Result of a settlement; it has a state where that was asked for. */
interface Settled {
  readonly standing: MoneyState | undefined
}
/** Result of `settle_v2`. */
interface SettledRow {
  readonly settled: readonly number[]
  readonly told: Told | null
}
interface Extending {
  readonly hold: Hold
  readonly more: More
}

/** A hold has the id of the row that will settle it, so that an orphan gets that row. */
export class PostgresLedger implements Ledger {
  readonly #sql: PostgresSql
  readonly #options: LedgerOptions
  readonly #nodes: Nodes
  readonly #spool: Spool
  readonly #recovery: Recovery
  readonly #plainHolds = new Batches<HoldRequest, Hold | undefined>(
    ({ id }) => id,
    some => this.#holdPlain(some),
  )
  readonly #holds = new Batches<HoldRequest, Hold | Exhausted>(
    ({ id }) => id,
    some => this.#hold(some),
  )
  readonly #extensions = new Batches<Extending, Hold>(
    ({ hold }) => hold.id,
    some => this.#extend(some),
  )
  readonly #plainEnds = new Batches<Settling, Settled | undefined>(
    ({ row }) => row.id,
    some => this.#settlePlain(some),
  )
  readonly #ends = new Batches<Settling, Settled>(
    ({ row }) => row.id,
    some => this.#settle(some),
  )
  readonly #plainVoids = new Batches<string, boolean>(
    id => id,
    some => this.#voidPlain(some),
  )
  readonly #voids = new Batches<string, void>(
    id => id,
    some => this.#void(some),
  )
  readonly #checkpoints = new Batches<readonly [Hold, Progress], void>(
    ([hold]) => hold.id,
    some => this.#checkpoint(some),
  )
  readonly #records = new Batches<RequestRow, void>(
    row => row.id,
    some => this.#record(some),
  )

  private constructor(pool: pg.Pool, options: LedgerOptions) {
    this.#sql = new PostgresSql(pool)
    this.#options = options
    this.#nodes = new Nodes(this.#sql, options)
    this.#spool = new Spool(options.spool, this.#nodes.id)
    const { warn } = options
    const parts = { sql: this.#sql, nodes: this.#nodes, spool: this.#spool, now: (sql: Sql) => this.#now(sql), warn }
    this.#recovery = new Recovery(parts)
  }

  /** Enters this node. `pool` has two connections: for holds, and for their ends. */
  static async open(pool: pg.Pool, options: LedgerOptions): Promise<PostgresLedger> {
    const ledger = new PostgresLedger(pool, options)
    await ledger.#nodes.join()
    return ledger
  }

  /** The presence of this process. */
  get nodes(): Nodes {
    return this.#nodes
  }

  async hold(request: HoldRequest): Promise<Hold | Exhausted> {
    try {
      const isPlain = !request.allowance || request.byok
      const granted = isPlain ? await this.#plainHolds.add(request) : undefined
      return granted ?? (await this.#holds.add(request))
    } catch (error) {
      // The money may be held nevertheless, by a hold that no answer would end.
      if (!isDataError(error)) this.#end(request.id).catch(this.#options.warn)
      return explain(error)
    }
  }

  extend(hold: Hold, more: More): Promise<Hold> {
    return this.#extensions.add({ hold, more }).catch(explain)
  }

  async settle(hold: Hold, row: RequestRow, tells = false): Promise<MoneyState | undefined> {
    const settling = { hold, row, tells }
    try {
      const plain = isPlan(hold.funds) ? undefined : await this.#plainEnds.add(settling)
      return (plain ?? (await this.#ends.add(settling))).standing
    } catch (error) {
      return explain(error)
    }
  }

  void(hold: Hold): Promise<void> {
    return this.#end(hold.id).catch(explain)
  }

  checkpoint(hold: Hold, progress: Progress): Promise<void> {
    return this.#checkpoints.add([hold, progress]).catch(explain)
  }

  record(row: RequestRow): Promise<void> {
    return this.#records.add(row).catch(explain)
  }

  get canSpool(): boolean {
    return this.#spool.hasRoom
  }

  spool(row: RequestRow, hold?: Hold): Promise<void> {
    const ends = hold && { id: hold.id, funds: hold.funds, budgets: hold.budgets }
    return this.#spool.append(ends ? { ...row, ends } : row).catch(explain)
  }

  async balance(orgId: string): Promise<{ balance: Money; held: Money; used: Money }> {
    const text = 'SELECT balance, held, used FROM balances WHERE org_id = $1'
    const [row] = await this.#sql.query<{ balance: Money; held: Money; used: Money }>(text, [orgId]).catch(explain)
    return row ?? { balance: 0n, held: 0n, used: 0n }
  }

  recover(): Promise<number> {
    return this.#recovery.run().catch(explain)
  }

  /** Ends the presence of this node, whose open holds become orphans. The pool stays open. */
  async close(): Promise<void> {
    const plain = [this.#plainHolds, this.#plainEnds, this.#plainVoids, this.#checkpoints, this.#records]
    for (const kinds of [plain, [this.#holds, this.#extensions, this.#ends, this.#voids]]) {
      await Promise.all(kinds.map(kind => kind.idle()))
    }
    await this.#nodes.leave()
  }

  /** The ledger within a transaction that is open already, for jobs. */
  within(sql: Sql): JobLedger {
    return {
      hold: async request => {
        const [result] = await reserveAll(sql, [request], { now: await this.#now(sql), owner: this.#nodes.id })
        return result!
      },
      void: async hold => {
        const open = (await lockHolds(sql, [hold.id])).get(hold.id)
        if (open) await endAll(sql, [endOf(open)], await this.#now(sql))
      },
      settle: async (hold, row) => {
        const [outcome] = await this.#settleWithin(sql, [{ hold, row, tells: false }])
        if (outcome && 'error' in outcome) throw outcome.error
      },
      handOver: async holdId => {
        await sql.query('UPDATE holds SET owner = $1 WHERE id = $2', [JOBS_OWNER, holdId])
      },
    }
  }

  async #end(holdId: string): Promise<void> {
    if (!(await this.#plainVoids.add(holdId))) await this.#voids.add(holdId)
  }

  /** Undefined where not all of them have room together. */
  async #holdPlain(requests: readonly HoldRequest[]): Promise<Outcome<Hold | undefined>[]> {
    await beginLimits(this.#sql, requests)
    const plain = requests.map(plainHold)
    const rows = requests.map((request, n) => ({ ...wantedRow(request, plain[n]!), n }))
    const values = [jsonOf(rows), this.#nodes.id, this.#options.now?.() ?? null]
    const [row] = await this.#sql.query<{ held: number[] }>('SELECT hold_v1($1, $2, $3) AS held', values)
    const held = new Set(row!.held)
    return requests.map(({ id, principal }, n) => {
      if (!held.has(n)) return { value: undefined }
      const { amount, funds } = plain[n]!
      const { orgId } = principal
      return { value: { id, orgId, amount, funds, budgets: limitsText(principal.budgets), refused: undefined } }
    })
  }

  async #hold(requests: readonly HoldRequest[]): Promise<Outcome<Hold | Exhausted>[]> {
    const reserved = await this.#transaction(async sql => {
      const at = { now: await this.#now(sql), owner: this.#nodes.id }
      return await reserveAll(sql, requests, at)
    })
    return reserved.map(value => ({ value }))
  }

  async #extend(wanted: readonly Extending[]): Promise<Outcome<Hold>[]> {
    return await this.#transaction(async sql => {
      const open = await lockHolds(
        sql,
        wanted.map(({ hold }) => hold.id),
      )
      const pairs = wanted.map(({ hold, more }) => ({ open: open.get(hold.id), more }))
      const grown = await extendAll(sql, pairs, await this.#now(sql))
      return wanted.map(({ hold }, i) => {
        const more = grown[i]
        if (!more) return { value: { ...hold, refused: nothingLeft } }
        const { budgets } = open.get(hold.id)!
        return { value: { ...hold, budgets, amount: hold.amount + more.amount, refused: more.refused } }
      })
    })
  }

  /** Commits without the disk, then waits for it once for all. */
  async #settlePlain(ends: readonly Settling[]): Promise<Outcome<Settled | undefined>[]> {
    const rows = ends.map(({ hold, row }, n) => {
      return { ...settlementOf(row, paymentOf(hold.funds, row)), hold_id: hold.id, n }
    })
    const values = [jsonOf(rows), this.#options.now?.() ?? null, ...askedOf(ends)]
    const call = () => this.#sql.query<SettledRow>('CALL settle_v2($1, $2, $3, $4, NULL, NULL)', values)
    const [row] = await this.#again(call)
    const settled = new Set(row!.settled)
    const standings = standingsOf(ends, row!.told)
    return ends.map((_, n) => ({ value: settled.has(n) ? { standing: standings[n] } : undefined }))
  }

  async #settle(ends: readonly Settling[]): Promise<Outcome<Settled>[]> {
    const [outcomes, standings] = await this.#again(async () => {
      const outcomes = await this.#transaction(sql => this.#settleWithin(sql, ends))
      return [outcomes, await flush(this.#sql, ends)] as const
    })
    return outcomes.map((outcome, n) => ('error' in outcome ? outcome : { value: { standing: standings[n] } }))
  }

  /** Sends settlements once more after the connection was lost: what is settled already stays so. */
  async #again<T>(send: () => Promise<T>): Promise<T> {
    try {
      return await send()
    } catch (error) {
      if (!isLost(error)) throw error
      return await send()
    }
  }

  async #settleWithin(sql: Sql, some: readonly Settling[]): Promise<Outcome<void>[]> {
    const open = await lockHolds(
      sql,
      some.map(({ hold }) => hold.id),
    )
    const ends: (End | undefined)[] = []
    for (const { hold, row } of some) {
      const known = open.get(hold.id)
      if (known) ends.push(endOf(known, row))
      else if (await isOwed(sql, hold, row)) ends.push({ id: undefined, open: gone(hold), row })
      else ends.push(undefined)
    }
    const settled = await endAll(
      sql,
      ends.filter(end => end !== undefined),
      await this.#now(sql),
    )
    let at = 0
    return ends.map(end => (end ? settled[at++]! : { value: undefined }))
  }

  async #voidPlain(ids: readonly string[]): Promise<Outcome<boolean>[]> {
    const values = [JSON.stringify(ids), this.#options.now?.() ?? null]
    const [row] = await this.#sql.query<{ ended: string[] }>(VOID, values)
    const ended = new Set(row!.ended)
    return ids.map(id => ({ value: ended.has(id) }))
  }

  async #void(ids: readonly string[]): Promise<Outcome<void>[]> {
    await this.#transaction(async sql => {
      const open = await lockHolds(sql, ids)
      if (open.size > 0)
        await endAll(
          sql,
          [...open.values()].map(hold => endOf(hold)),
          await this.#now(sql),
        )
    })
    return ids.map(() => ({ value: undefined }))
  }

  async #checkpoint(notes: readonly (readonly [Hold, Progress])[]): Promise<Outcome<void>[]> {
    const texts = Object.fromEntries(notes.map(([{ id }, progress]) => [id, written(progress)]))
    await this.#sql.query('SELECT checkpoint_v1($1)', [jsonOf(texts)])
    return notes.map(() => ({ value: undefined }))
  }

  async #record(rows: readonly RequestRow[]): Promise<Outcome<void>[]> {
    const free = rows.map(row =>
      settlementOf(row, { cost: row.cost === null ? null : 0n, funds: 'credits', charged: 0n }),
    )
    await this.#sql.query('SELECT record_v1($1, $2)', [jsonOf(free), this.#options.now?.() ?? null])
    return rows.map(() => ({ value: undefined }))
  }

  #transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#sql.transaction(work, 'committed')
  }

  async #now(sql: Sql): Promise<number> {
    const given = this.#options.now?.()
    if (given !== undefined) return given
    const [row] = await sql.query<{ now: bigint }>('SELECT now_ms() AS now')
    return Number(row!.now)
  }
}

/**
 * Whether a row whose hold is gone is still to be charged: recovery has recorded the request as orphaned, or the server
 * has lost the hold in a crash, since holds do not wait for the disk. Part of a session has a row of its own.
 */
async function isOwed(sql: Sql, hold: Hold, row: RequestRow): Promise<boolean> {
  const outcome = await outcomeOf(sql, row.id)
  return outcome === undefined ? (await outcomeOf(sql, hold.id)) === undefined : outcome === 'orphaned'
}

/** Returns the amounts of a hold on credits, or on the caller's own key, when everything has room. */
const plainHold = ({ amount, spare = 0n, byok }: HoldRequest) =>
  ({ amount: amount + spare, wanted: amount + 2n * spare, funds: byok ? 'byok' : 'credits' }) as const

/** No write error is the caller's fault. */
function explain(cause: unknown): never {
  throw errors.billingUnavailable(cause)
}

const VOID = 'SELECT void_v1(ARRAY(SELECT json_array_elements_text($1::json)), $2) AS ended'
