/** The ledger: holds, charges and request rows, each change conditional in SQL, so that processes cannot disagree. */
import type { Statement } from 'better-sqlite3'
import { errors } from '../../core/error.ts'
import type { Money } from '../../core/money.ts'
import type { Hold, HoldRequest, Ledger, RequestRow } from '../../core/ports.ts'
import { Balances } from './balances.ts'
import { atStart, type Sqlite } from './open.ts'
import { isAlive, type Owner, thisProcess } from './owner.ts'
import { RequestLog } from './requests.ts'
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
    this.#options = options
    this.#insertHold = db.prepare(`
      INSERT INTO holds (id, org_id, project_id, key_id, request_id, caller_id, endpoint, requested_model, model,
        provider, amount, owner, created_at, expires_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    this.#closeHold = db
      .prepare<[string], OpenHold>('DELETE FROM holds WHERE id = ? RETURNING org_id, amount')
      .safeIntegers()
    this.#orphan = db
      .prepare<{ living: string; before: number }, Orphan>(`
        DELETE FROM holds
        WHERE owner NOT IN (SELECT value FROM json_each(@living)) OR expires_at < @before
        RETURNING *`)
      .safeIntegers()
    this.#charge = db.prepare(`
      INSERT INTO ledger (org_id, request_id, kind, amount, created_at)
      VALUES (?, ?, 'charge', ?, ?)`)
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

  hold({ id, request, principal, amount, expiresAt }: HoldRequest): Promise<Hold | 'insufficient'> {
    const { orgId, projectId, keyId } = principal
    const { requestId, endpoint, requestedModel, model, provider } = request
    return this.#write(() => {
      if (!this.#balances.reserve(principal, amount)) return 'insufficient'
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
        this.#options.now(),
        Math.ceil(expiresAt),
      )
      return { id, orgId, amount }
    })
  }

  settle(hold: Hold, row: RequestRow): Promise<void> {
    return this.#write(() => {
      const open = this.#closeHold.get(hold.id)
      if (!open) return
      const cost = row.cost ?? 0n
      this.#balances.release(open.org_id, open.amount, cost)
      if (cost > 0n) this.#charge.run(open.org_id, row.id, -cost, this.#options.now())
      if (!this.#log.add(row, row.cost)) throw new Error(`Request ${row.id} is recorded already, so it is not charged.`)
    })
  }

  void(hold: Hold): Promise<void> {
    return this.#write(() => {
      const open = this.#closeHold.get(hold.id)
      if (open) this.#balances.release(open.org_id, open.amount, 0n)
    })
  }

  record(row: RequestRow): Promise<void> {
    return this.#write(() => {
      this.#log.add(row, row.cost === null ? null : 0n)
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
        this.#balances.release(orphan.org_id, orphan.amount, 0n)
        this.#log.add(orphanRow(orphan), 0n)
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

  /** Nothing that happens to a write is the caller's fault. */
  #write<T>(work: () => T): Promise<T> {
    return this.#writer.run(work, errors.billingUnavailable)
  }
}

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
})
