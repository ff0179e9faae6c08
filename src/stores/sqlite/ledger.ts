/** The ledger: holds, charges and request rows, each change conditional in SQL, so that processes cannot disagree. */
import type { Statement } from 'better-sqlite3'
import { errors } from '../../core/error.ts'
import type { Money } from '../../core/money.ts'
import type { Exhausted, Funds, Hold, HoldRequest, Ledger, RequestRow } from '../../core/ports.ts'
import { Balances } from './balances.ts'
import { Budgets } from './budgets.ts'
import { atStart, type Sqlite } from './open.ts'
import { isAlive, type Owner, thisProcess } from './owner.ts'
import { RequestLog } from './requests.ts'
import { Subscriptions } from './subscriptions.ts'
import type { Writer } from './writer.ts'

const HEARTBEAT_MS = 10_000
/** A hold of a living owner is an orphan so long after it expired. */
const GRACE_MS = 60_000

export interface LedgerOptions {
  /** Wall clock, Unix milliseconds. */
  readonly now: () => number
  /** Told of a heartbeat that could not be written. */
  readonly warn: (error: unknown) => void
}

interface OpenHold {
  readonly org_id: string
  readonly amount: bigint
  readonly funds: Funds
  /** A JSON array of ids; null for none. */
  readonly budgets: string | null
}
interface Orphan extends OpenHold {
  readonly request_id: string
  readonly caller_id: string
  readonly project_id: string
  readonly key_id: string
  readonly endpoint: string
  readonly requested_model: string
  readonly model: string | null
  readonly provider: string | null
  readonly created_at: bigint
}

/** A hold knows the id of the row that will settle it, so that an orphan gets that very row. */
export class SqliteLedger implements Ledger {
  readonly #writer: Writer
  readonly #log: RequestLog
  readonly #balances: Balances
  readonly #budgets: Budgets
  readonly #subscriptions: Subscriptions
  readonly #options: LedgerOptions
  readonly #owner: Owner = thisProcess()
  readonly #heartbeat: NodeJS.Timeout
  readonly #insertHold: Statement
  readonly #closeHold: Statement<[string], OpenHold>
  readonly #orphan: Statement<{ living: string; before: number }, Orphan>
  readonly #charge: Statement
  readonly #balance: Statement<[string], { balance: Money; held: Money; used: Money }>
  readonly #beat: Statement
  readonly #owners: Statement<[], Owner & { seen_at: number }>
  readonly #forgetDead: Statement<[string]>
  readonly #forget: Statement<[string]>

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
    this.#closeHold = db
      .prepare<[string], OpenHold>('DELETE FROM holds WHERE id = ? RETURNING org_id, amount, funds, budgets')
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
    this.#beat = db.prepare(`
      INSERT INTO owners (id, pid, started, host, seen_at) VALUES (@id, @pid, @started, @host, @now)
      ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`)
    this.#owners = db.prepare('SELECT id, pid, started, host, seen_at FROM owners')
    this.#forgetDead = db.prepare('DELETE FROM owners WHERE id NOT IN (SELECT value FROM json_each(?))')
    this.#forget = db.prepare('DELETE FROM owners WHERE id = ?')

    atStart(db, () => this.#beat.run({ ...this.#owner, now: options.now() }))
    this.#heartbeat = setInterval(() => {
      writer.run(() => this.#beat.run({ ...this.#owner, now: options.now() })).catch(options.warn)
    }, HEARTBEAT_MS)
    this.#heartbeat.unref()
  }

  hold(asked: HoldRequest): Promise<Hold | 'insufficient' | Exhausted> {
    const { id, request, principal, amount, expiresAt } = asked
    const { orgId, projectId, keyId, budgets } = principal
    const { requestId, endpoint, requestedModel, model, provider } = request
    return this.#write(() => {
      const now = this.#options.now()
      const full = budgets.length > 0 ? this.#budgets.reserve(budgets, amount, now) : undefined
      if (full) return full
      const limits = budgets.map(budget => budget.id)
      const funds = this.#reserve(asked, now)
      if (typeof funds === 'object' || funds === 'insufficient') {
        this.#budgets.release(limits, amount, 0n, now)
        return funds
      }
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
        this.#owner.id,
        now,
        Math.ceil(expiresAt),
        funds,
        limits.length > 0 ? JSON.stringify(limits) : null,
      )
      return { id, orgId, amount, funds }
    })
  }

  settle(hold: Hold, row: RequestRow): Promise<void> {
    return this.#write(() => {
      const open = this.#closeHold.get(hold.id)
      if (!open) return
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
    })
  }

  void(hold: Hold): Promise<void> {
    return this.#write(() => {
      const open = this.#closeHold.get(hold.id)
      if (open) this.#release(open, 0n, 0n, this.#options.now())
    })
  }

  record(row: RequestRow): Promise<void> {
    return this.#write(() => {
      this.#log.add(row, { cost: row.cost === null ? null : 0n, funds: 'credits', charged: 0n })
    })
  }

  async balance(orgId: string): Promise<{ balance: Money; held: Money; used: Money }> {
    return this.#balance.get(orgId) ?? { balance: 0n, held: 0n, used: 0n }
  }

  recover(): Promise<number> {
    return this.#write(() => {
      const now = this.#options.now()
      const living = JSON.stringify(
        this.#owners
          .all()
          .filter(owner => owner.id === this.#owner.id || isAlive(owner, now))
          .map(owner => owner.id),
      )
      const orphans = this.#orphan.all({ living, before: now - GRACE_MS })
      for (const orphan of orphans) {
        this.#release(orphan, 0n, 0n, now)
        this.#log.add(orphanRow(orphan), { cost: 0n, funds: orphan.funds, charged: 0n })
      }
      this.#forgetDead.run(living)
      return orphans.length
    })
  }

  flush(): Promise<void> {
    return this.#writer.flush()
  }

  /** Ends the heartbeat; holds that are still open belong to nobody then. The database stays open. */
  async close(): Promise<void> {
    clearInterval(this.#heartbeat)
    await this.#write(() => this.#forget.run(this.#owner.id))
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

  /** Nothing that happens to a write is the caller's fault. */
  #write<T>(work: () => T): Promise<T> {
    return this.#writer.run(work, errors.billingUnavailable)
  }
}

const isPlan = (funds: Funds): boolean => funds === 'plan' || funds === 'premium'

/** All that is known of a request whose process died: who asked, for what, and when. */
const orphanRow = (orphan: Orphan): RequestRow => ({
  id: orphan.request_id,
  requestId: orphan.caller_id,
  at: Number(orphan.created_at),
  orgId: orphan.org_id,
  projectId: orphan.project_id,
  keyId: orphan.key_id,
  endpoint: orphan.endpoint,
  requestedModel: orphan.requested_model,
  model: orphan.model,
  provider: orphan.provider,
  source: null,
  status: 0,
  outcome: 'orphaned',
  errorCode: null,
  streamed: false,
  cached: false,
  attempts: 1,
  durationMs: 0,
  ttftMs: null,
  usage: {},
  estimated: false,
  cost: 0n,
  storage: 0n,
  discount: 0,
  tier: null,
})
