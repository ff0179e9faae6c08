/**
 * The ledger: holds, charges and request rows. Every change is conditional in SQL, so that processes cannot conflict.
 */
import type { Statement } from 'better-sqlite3'
import type { Money } from '../../core/money.ts'
import type { Exhausted, Hold, HoldRequest, Ledger, Progress, RequestRow } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import type { MoneyState } from '../../limits/alerts.ts'
import {
  byCheckpoint,
  type HoldOfRequest,
  type HoldRow,
  isCharged,
  lostRequest,
  type Orphan,
  openHold,
  written,
} from '../rules/holds.ts'
import { JOBS_OWNER } from '../rules/jobs.ts'
import {
  begunByHold,
  gone,
  limitsIn,
  limitsText,
  nothingLeft,
  type OpenHold,
  Reservations,
} from '../rules/reservations.ts'
import { type Bill, GRACE_MS, NOTHING, orphanRow, ownHold, recordSettlement } from '../rules/settlement.ts'
import { Spool, type Spooled } from '../spool.ts'
import type { JobLedger } from '../sql/jobs/table.ts'
import { Budgets, Subscriptions } from './accounts.ts'
import { Balances } from './balances.ts'
import { type InstanceOptions, Instances } from './instances.ts'
import type { Sqlite } from './open.ts'
import { RequestLog } from './requests.ts'
import type { Durability } from './write.ts'
import type { Writer } from './writer.ts'

const ROWS_PER_TRANSACTION = 500

interface LedgerOptions extends InstanceOptions {
  /** Path of the database: rows that it cannot take are spooled to files beside it. */
  readonly spool?: string | undefined
}

/** A hold has the id of the row that will settle it, so that an orphan gets that row. */
export class SqliteLedger implements Ledger {
  readonly #writer: Writer
  readonly #log: RequestLog
  readonly #reservations: Reservations
  readonly #balances: Balances
  readonly #budgets: Budgets
  readonly #options: LedgerOptions
  readonly #owners: Instances
  readonly #spool: Spool
  readonly #insertHold: Statement
  readonly #grow: Statement<[Money, string], { budgets: string | null }>
  readonly #handOver: Statement
  readonly #progress: Statement
  readonly #closeAsLeft: Statement
  readonly #closeHold: Statement<[string], HoldRow>
  readonly #closeHoldsOf: Statement<[string], HoldOfRequest>
  readonly #orphan: Statement<{ living: string; before: number }, Orphan>
  readonly #charge: Statement
  readonly #balance: Statement<[string], { balance: Money; held: Money; used: Money }>

  constructor(db: Sqlite, writer: Writer, options: LedgerOptions) {
    this.#writer = writer
    this.#log = new RequestLog(db, writer, options.now)
    this.#budgets = new Budgets(db, writer)
    this.#balances = new Balances(db, writer)
    this.#reservations = new Reservations(this.#balances, this.#budgets, new Subscriptions(db, writer))
    this.#options = options
    this.#insertHold = db.prepare(`
      INSERT INTO holds (id, org_id, project_id, key_id, request_id, caller_id, endpoint, requested_model, model,
        provider, amount, owner, created_at, expires_at, funds, budgets)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    this.#grow = db.prepare('UPDATE holds SET amount = amount + ? WHERE id = ? RETURNING budgets')
    this.#handOver = db.prepare('UPDATE holds SET owner = ? WHERE id = ?')
    this.#progress = db.prepare('UPDATE holds SET progress = ? WHERE id = ?')
    this.#closeAsLeft = db.prepare('DELETE FROM holds WHERE id = ? AND amount = ? AND budgets IS ?')
    const closed = 'RETURNING org_id, amount, funds, budgets'
    this.#closeHold = db.prepare<[string], HoldRow>(`DELETE FROM holds WHERE id = ? ${closed}`).safeIntegers()
    this.#closeHoldsOf = db
      .prepare<[string], HoldOfRequest>(`DELETE FROM holds WHERE request_id = ? ${closed}, id, provider, created_at`)
      .safeIntegers()
    this.#orphan = db
      .prepare<{ living: string; before: number }, Orphan>(`
        DELETE FROM holds
        WHERE owner <> '${JOBS_OWNER}'
          AND (owner NOT IN (SELECT value FROM json_each(@living)) OR expires_at < @before)
        RETURNING *`)
      .safeIntegers()
    this.#charge = db.prepare(`
      INSERT INTO ledger (org_id, request_id, kind, amount, created_at)
      VALUES (?, ?, ?, ?, ?)`)
    this.#balance = db
      .prepare<[string], { balance: Money; held: Money; used: Money }>(
        'SELECT balance, held, used FROM balances WHERE org_id = ?',
      )
      .safeIntegers()
    this.#owners = new Instances(db, writer, options)
    this.#spool = new Spool(options.spool, this.#owners.id)
  }

  hold(holdRequest: HoldRequest): Promise<Hold | Exhausted> {
    return this.#write('committed', () => this.#hold(holdRequest))
  }

  #hold(holdRequest: HoldRequest): Hold | Exhausted {
    const { id, request, principal, expiresAt } = holdRequest
    const { orgId, projectId, keyId, budgets } = principal
    const { requestId, endpoint, requestedModel, model, provider } = request
    const now = this.#options.now()
    for (const limit of begunByHold(holdRequest)) this.#budgets.begin(limit, now)
    const reserved = this.#reservations.reserve(holdRequest, now)
    if ('exhausted' in reserved) return reserved
    const { amount, funds, refused, passed } = reserved
    const counted = limitsText(budgets)
    this.#insertHold.run(
      id,
      orgId,
      projectId,
      keyId,
      request.id,
      requestId,
      endpoint,
      requestedModel,
      model,
      provider,
      amount,
      this.#owners.id,
      now,
      Math.ceil(expiresAt),
      funds,
      counted,
    )
    return { id, orgId, amount, funds, budgets: counted, refused, passed }
  }

  /** The ledger within a transaction that is open already, for jobs. */
  within(): JobLedger {
    return {
      hold: async request => this.#hold(request),
      void: async hold => this.#void(hold),
      settle: async (hold, row) => this.#settleHold(hold, row),
      handOver: async holdId => void this.#handOver.run(JOBS_OWNER, holdId),
    }
  }

  extend(hold: Hold, more: Pick<HoldRequest, 'principal' | 'amount' | 'allowance'>): Promise<Hold> {
    return this.#write('committed', () => {
      // Even when nothing can be added, its limits may have changed.
      const open = this.#grow.get(0n, hold.id)
      if (!open) return { ...hold, refused: nothingLeft }
      const { budgets } = open
      const reserved = this.#reservations.extend({ funds: hold.funds, budgets }, more, this.#options.now())
      if ('exhausted' in reserved) return { ...hold, budgets, refused: reserved }
      const { amount, refused } = reserved
      this.#grow.run(amount, hold.id)
      return { ...hold, budgets, amount: hold.amount + amount, refused }
    })
  }

  async settle(hold: Hold, row: RequestRow, tells = false): Promise<MoneyState | undefined> {
    const limits = await this.#write('durable', () => {
      this.#settleHold(hold, row)
      if (!tells) return undefined
      this.#balances.tell(hold.orgId)
      return this.#budgets.standing(limitsIn(hold.budgets), this.#options.now())
    })
    return limits && { limits, credits: this.#balances.known(hold.orgId) }
  }

  #settleHold(hold: Hold, row: RequestRow): void {
    const open = this.#close(hold)
    if (open) this.#settle(open, row)
    // Recovery had recorded the request as orphaned.
    else if (this.#log.outcomeOf(row.id) === 'orphaned') this.#settle(gone(hold), row)
  }

  void(hold: Hold): Promise<void> {
    return this.#write('committed', () => this.#void(hold))
  }

  #void(hold: Hold): void {
    const open = this.#close(hold)
    if (open) this.#reservations.release(open, NOTHING, this.#options.now())
  }

  checkpoint(hold: Hold, progress: Progress): Promise<void> {
    return this.#write('committed', () => void this.#progress.run(written(progress), hold.id))
  }

  record(row: RequestRow): Promise<void> {
    return this.#write('committed', () => {
      this.#log.add(row, { cost: row.cost === null ? null : 0n, funds: 'credits', charged: 0n })
    })
  }

  async balance(orgId: string): Promise<{ balance: Money; held: Money; used: Money }> {
    return this.#balance.get(orgId) ?? { balance: 0n, held: 0n, used: 0n }
  }

  get canSpool(): boolean {
    return this.#spool.hasRoom
  }

  spool(row: RequestRow, hold?: Hold): Promise<void> {
    const ends = hold && { id: hold.id, funds: hold.funds, budgets: hold.budgets }
    return this.#spool.append(ends ? { ...row, ends } : row).catch((cause: unknown) => {
      throw errors.billingUnavailable(cause)
    })
  }

  async recover(): Promise<number> {
    const living = this.#owners.living()
    // Before the sweep, or an orphan would temporarily replace a row that is known.
    await this.#spool.drain(living, rows => this.#enterAll(rows)).catch(this.#options.warn)
    return this.#write('durable', () => {
      const now = this.#options.now()
      // The sweep skips processes that ended since then: the next sweep enters their spooled rows.
      const spared = [...living, ...this.#owners.living()]
      const orphans = this.#orphan.all({ living: JSON.stringify(spared), before: now - GRACE_MS })
      for (const orphan of orphans.sort(byCheckpoint)) {
        // Another attempt or process may have ended it.
        const isDue = isCharged(this.#log.outcomeOf(orphan.request_id), orphan)
        if (isDue) this.#settle(openHold(orphan), orphanRow(lostRequest(orphan)))
        else this.#reservations.release(openHold(orphan), NOTHING, now)
      }
      this.#owners.keepOnly(spared)
      // Writes each time, so that a probe notices an unwritable file.
      this.#owners.beat()
      return orphans.length
    })
  }

  /** How many processes have this database open. */
  get living(): number {
    return this.#owners.living().length
  }

  /** Stops the heartbeat and gives up open holds. The database stays open. */
  async close(): Promise<void> {
    this.#owners.stop()
    await this.#write('committed', () => this.#owners.leave())
  }

  /** Within a transaction: ends a hold; undefined when it has ended. RETURNING costs as much as another row. */
  #close({ id, orgId, amount, funds, budgets }: Hold): OpenHold | undefined {
    if (this.#closeAsLeft.run(id, amount, budgets).changes > 0) return { orgId, amount, funds, budgets }
    // The hold may have grown, and a limit set meanwhile counts it too.
    const row = this.#closeHold.get(id)
    return row && openHold(row)
  }

  /** Within a transaction: records and charges a hold's result. Throws when the request is already recorded. */
  #settle(open: OpenHold, row: RequestRow): void {
    const { bill, reference } = recordSettlement(this.#log, open.funds, row)
    this.#take(open, reference, bill)
  }

  /** Within a transaction: ends a hold with its bill; `reference` names the entries in the ledger. */
  #take(open: OpenHold, reference: string, bill: Bill): void {
    const now = this.#options.now()
    const at = this.#reservations.release(open, bill, now)
    if (bill.charge > 0n) this.#charge.run(open.orgId, reference, 'charge', -bill.charge, now)
    if (bill.planned > 0n) this.#charge.run(open.orgId, reference, 'plan', -bill.planned, at)
  }

  /**
   * Enters spooled rows; returns those that the database rejects for their values. Rejects when it cannot be written.
   */
  async #enterAll(rows: readonly Spooled[]): Promise<Spooled[]> {
    const refused: Spooled[] = []
    for (let at = 0; at < rows.length; at += ROWS_PER_TRANSACTION) {
      const batch = rows.slice(at, at + ROWS_PER_TRANSACTION)
      // Writes requested at once form one transaction, unless one of them fails.
      const ends = await Promise.allSettled(batch.map(row => this.#write('durable', () => this.#enter(row))))
      for (const [i, end] of ends.entries()) {
        if (end.status === 'fulfilled') continue
        const row = batch[i]!
        const { cause } = end.reason as Error
        if (!this.#writer.refuses(cause)) throw end.reason
        this.#options.warn(new Error(`The row of request ${row?.id} cannot be entered and is set aside.`, { cause }))
        refused.push(row)
      }
    }
    return refused
  }

  /**
   * Within a transaction: settles a request whose row was spooled, unless it is settled. A row that names no hold
   * belongs to a caller with its own key; holds of other attempts are those whose release failed.
   */
  #enter({ ends, ...row }: Spooled): void {
    const outcome = this.#log.outcomeOf(row.id)
    if (outcome !== undefined && outcome !== 'orphaned') return
    const holds = this.#closeHoldsOf.all(row.id).sort((a, b) => Number(a.created_at - b.created_at))
    const own = ownHold(holds, ends, row)
    for (const hold of holds) if (hold !== own) this.#reservations.release(openHold(hold), NOTHING, this.#options.now())
    const { funds = 'byok', budgets = null } = ends ?? {}
    // A part of a session is recorded under another id than that of its hold's request.
    const named = own ?? (ends && this.#closeHold.get(ends.id))
    this.#settle(named ? openHold(named) : { orgId: row.orgId, amount: 0n, funds, budgets }, row)
  }

  /** No write error is the caller's fault. Holds end with their request, so that only charges must reach the disk. */
  #write<T>(safety: Durability, work: () => T): Promise<T> {
    return this.#writer.run(work, safety, errors.billingUnavailable)
  }
}
