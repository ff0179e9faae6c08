/** The ledger: holds, charges and request rows, each change conditional in SQL, so that processes cannot disagree. */
import type { Statement } from 'better-sqlite3'
import { errors } from '../../core/error.ts'
import type { Money } from '../../core/money.ts'
import type { Exhausted, Funds, Hold, HoldRequest, Ledger, Progress, RequestRow } from '../../core/ports.ts'
import { Balances } from './balances.ts'
import { Budgets } from './budgets.ts'
import type { Sqlite } from './open.ts'
import { type OpenHold, type Orphan, orphanRow, written } from './orphan.ts'
import { type OwnerOptions, Owners } from './owners.ts'
import { RequestLog } from './requests.ts'
import { Spool } from './spool.ts'
import { Subscriptions } from './subscriptions.ts'
import type { Safety, Writer } from './writer.ts'

/** A hold of a living owner is an orphan so long after it expired. */
const GRACE_MS = 60_000

/** Rows that a spool holds are entered so many at a time. */
const BATCH = 500

export interface LedgerOptions extends OwnerOptions {
  /** Where rows are kept that the database cannot take. */
  readonly spool?: string | undefined
}

/** A hold knows the id of the row that will settle it, so that an orphan gets that very row. */
export class SqliteLedger implements Ledger {
  readonly #writer: Writer
  readonly #log: RequestLog
  readonly #balances: Balances
  readonly #budgets: Budgets
  readonly #subscriptions: Subscriptions
  readonly #options: LedgerOptions
  readonly #owners: Owners
  readonly #spool: Spool
  readonly #insertHold: Statement
  readonly #progress: Statement
  readonly #closeAsLeft: Statement
  readonly #closeHold: Statement<[string], OpenHold>
  readonly #closeHoldOf: Statement<[string], OpenHold>
  readonly #orphan: Statement<{ living: string; before: number }, Orphan>
  readonly #charge: Statement
  readonly #balance: Statement<[string], { balance: Money; held: Money; used: Money }>

  constructor(db: Sqlite, writer: Writer, options: LedgerOptions) {
    this.#writer = writer
    this.#log = new RequestLog(db, writer)
    this.#balances = new Balances(db, writer)
    this.#budgets = new Budgets(db, writer)
    this.#subscriptions = new Subscriptions(db, writer)
    this.#options = options
    this.#insertHold = db.prepare(`
      INSERT INTO holds (id, org_id, project_id, key_id, request_id, caller_id, endpoint, requested_model, model,
        provider, amount, owner, created_at, expires_at, funds, budgets)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    this.#progress = db.prepare('UPDATE holds SET progress = ? WHERE id = ?')
    this.#closeAsLeft = db.prepare('DELETE FROM holds WHERE id = ? AND budgets IS ?')
    const closed = 'RETURNING org_id, amount, funds, budgets'
    this.#closeHold = db.prepare<[string], OpenHold>(`DELETE FROM holds WHERE id = ? ${closed}`).safeIntegers()
    this.#closeHoldOf = db
      .prepare<[string], OpenHold>(`DELETE FROM holds WHERE request_id = ? ${closed}`)
      .safeIntegers()
    this.#orphan = db
      .prepare<{ living: string; before: number }, Orphan>(`
        DELETE FROM holds
        WHERE owner NOT IN (SELECT value FROM json_each(@living)) OR expires_at < @before
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
    this.#owners = new Owners(db, writer, options)
    this.#spool = new Spool(options.spool, this.#owners.id)
  }

  hold(asked: HoldRequest): Promise<Hold | 'insufficient' | Exhausted> {
    const { id, request, principal, amount, expiresAt } = asked
    const { orgId, projectId, keyId, budgets } = principal
    const { requestId, endpoint, requestedModel, model, provider } = request
    return this.#write('committed', () => {
      const now = this.#options.now()
      const full = budgets.length > 0 ? this.#budgets.reserve(budgets, amount, now) : undefined
      if (full) return full
      const limits = budgets.map(budget => budget.id)
      const funds = this.#reserve(asked, now)
      if (typeof funds === 'object' || funds === 'insufficient') {
        this.#budgets.release(limits, amount, 0n, now)
        return funds
      }
      const counted = limits.length > 0 ? JSON.stringify(limits) : null
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
      return { id, orgId, amount, funds, budgets: counted }
    })
  }

  settle(hold: Hold, row: RequestRow): Promise<void> {
    return this.#write('durable', () => {
      const open = this.#close(hold)
      if (open) this.#settle(open, row)
    })
  }

  void(hold: Hold): Promise<void> {
    return this.#write('committed', () => {
      const open = this.#close(hold)
      if (open) this.#release(open, 0n, 0n, this.#options.now())
    })
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

  spool(row: RequestRow): Promise<void> {
    return this.#spool.append(row).catch((cause: unknown) => {
      throw errors.billingUnavailable(cause)
    })
  }

  async recover(): Promise<number> {
    const living = this.#owners.living()
    const enter = async (rows: readonly RequestRow[]) => {
      for (let at = 0; at < rows.length; at += BATCH) {
        await this.#write('durable', () => {
          for (const row of rows.slice(at, at + BATCH)) this.#enter(row)
        })
      }
    }
    // First, or an orphan would stand in the place of a row that is known.
    await this.#spool.drain(living, enter).catch(this.#options.warn)
    return this.#write('durable', () => {
      const now = this.#options.now()
      const orphans = this.#orphan.all({ living: JSON.stringify(this.#owners.living()), before: now - GRACE_MS })
      for (const orphan of orphans) {
        // Another attempt of it, or another process, may have ended it.
        if (this.#log.has(orphan.request_id)) this.#release(orphan, 0n, 0n, now)
        else this.#settle(orphan, orphanRow(orphan))
      }
      this.#owners.keepOnly(this.#owners.living())
      return orphans.length
    })
  }

  flush(): Promise<void> {
    return this.#writer.flush()
  }

  /** Ends the heartbeat; holds that are still open belong to nobody then. The database stays open. */
  async close(): Promise<void> {
    this.#owners.stop()
    await this.#write('committed', () => this.#owners.leave())
  }

  /** Within a transaction: ends a hold; undefined when it has ended already. RETURNING costs as much as a row. */
  #close({ id, orgId, amount, funds, budgets }: Hold): OpenHold | undefined {
    if (this.#closeAsLeft.run(id, budgets).changes > 0) return { org_id: orgId, amount, funds, budgets }
    // A limit that was set meanwhile counts it too.
    return this.#closeHold.get(id)
  }

  /** Within a transaction: charges and records what a hold came to. Throws when the request is recorded already. */
  #settle(open: OpenHold, row: RequestRow): void {
    const { org_id: orgId, funds } = open
    const now = this.#options.now()
    const cost = row.cost ?? 0n
    const charge = funds === 'credits' ? cost + row.storage : row.storage
    this.#release(open, cost, row.storage, now)
    if (charge > 0n) this.#charge.run(orgId, row.id, 'charge', -charge, now)
    const planned = isPlan(funds) ? cost : 0n
    if (planned > 0n) this.#charge.run(orgId, row.id, 'plan', -planned, now)
    if (!this.#log.add(row, { cost: row.cost, funds, charged: charge + planned })) {
      throw new Error(`Request ${row.id} is recorded already, so it is not charged.`)
    }
  }

  /** Within a transaction: settles a request whose row was spooled, unless that is done. */
  #enter(row: RequestRow): void {
    if (this.#log.has(row.id)) return
    const open = this.#closeHoldOf.get(row.id)
    this.#settle(open ?? { org_id: row.orgId, amount: 0n, funds: 'byok', budgets: null }, row)
  }

  /** Within a transaction: the plan pays if it can, then credits, if they may. */
  #reserve({ principal, amount, byok, allowance }: HoldRequest, now: number): Funds | 'insufficient' | Exhausted {
    if (byok) return 'byok'
    const granted = allowance && this.#subscriptions.reserve(principal.orgId, allowance, amount, now)
    if (typeof granted === 'string') return granted
    if (granted && !principal.plan?.overflow) return granted
    if (this.#balances.reserve(principal, amount)) return 'credits'
    return granted ?? 'insufficient'
  }

  /** Within a transaction: gives a hold back, and takes what it came to. */
  #release({ org_id: orgId, amount, funds, budgets }: OpenHold, cost: Money, storage: Money, now: number): void {
    if (funds === 'credits') this.#balances.release(orgId, amount, cost + storage)
    else if (storage > 0n) this.#balances.release(orgId, 0n, storage)
    if (isPlan(funds)) this.#subscriptions.release(orgId, funds, amount, cost, now)
    if (budgets !== null) this.#budgets.release(JSON.parse(budgets) as string[], amount, cost, now)
  }

  /**
   * Nothing that happens to a write is the caller's fault. What is held dies with its request, so that only what is
   * charged must be on disk.
   */
  #write<T>(safety: Safety, work: () => T): Promise<T> {
    return this.#writer.run(work, safety, errors.billingUnavailable)
  }
}

const isPlan = (funds: Funds): boolean => funds === 'plan' || funds === 'premium'
