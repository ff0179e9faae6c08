/** Jobs on SQLite: whoever holds the lease and the newest fence moves a row, each move one conditional transaction. */
import type { Statement } from 'better-sqlite3'
import { errors } from '../../core/error.ts'
import type {
  EndedJob,
  Exhausted,
  Hold,
  HoldRequest,
  Job,
  JobError,
  JobScope,
  JobStore,
  JobsStatus,
  JobTarget,
  Lease,
  MovedJob,
  NewJob,
  Page,
  RequestRow,
  StartedJob,
} from '../../core/ports.ts'
import type { Keyring } from '../keyring.ts'
import { IDEMPOTENT_MS, isRunning, type LedgerTransaction, moved } from '../rules/jobs.ts'
import { sealText } from '../sealing.ts'
import { JobEvents } from './job-events.ts'
import { type JobRow, jobOf, placeOf } from './job-rows.ts'
import type { Sqlite } from './open.ts'
import { ALL } from './page.ts'
import type { Durability } from './write.ts'
import type { Writer } from './writer.ts'

const RUNNING = "state IN ('queued', 'in_progress')"
const FREE = '(lease_until IS NULL OR lease_until <= @now)'
/** What nobody needs any more once a result is gone. */
const NO_RESULT = `result_kind = NULL, result_url = NULL, result_blob = NULL, result_type = NULL, result_bytes = NULL,
  result_etag = NULL`

interface Claim extends Lease {
  readonly id?: string
}

/** The page behind the job @after, and its order. */
const NEWEST_FIRST = `(@after IS NULL OR (created_at, id) < (SELECT created_at, id FROM jobs WHERE id = @after))
  ORDER BY created_at DESC, id DESC`
const OLDEST_FIRST = `(@after IS NULL OR (created_at, id) > (SELECT created_at, id FROM jobs WHERE id = @after))
  ORDER BY created_at, id`

export class SqliteJobs extends JobEvents implements JobStore {
  readonly #db: Sqlite
  readonly #writer: Writer
  readonly #ledger: LedgerTransaction
  readonly #keyring: () => Keyring
  readonly #get: Statement<[string], JobRow>
  readonly #nextAt: Statement<[], number | null>
  readonly #claim: Statement<Claim, JobRow>
  readonly #claimOne: Statement<Claim, JobRow>

  constructor(db: Sqlite, writer: Writer, ledger: LedgerTransaction, keyring: () => Keyring) {
    super(db, work => this.#write('committed', work))
    this.#db = db
    this.#writer = writer
    this.#ledger = ledger
    this.#keyring = keyring
    this.#get = db.prepare<[string], JobRow>('SELECT * FROM jobs WHERE id = ?').safeIntegers()
    // What somebody has claimed is due when the lease is over.
    this.#nextAt = db
      .prepare<[], number | null>(`
        SELECT min(at) FROM (
          SELECT min(max(next_at, coalesce(lease_until, 0))) AS at FROM jobs
          WHERE state IN ('creating', 'queued', 'in_progress')
          UNION ALL SELECT min(max(next_at, coalesce(lease_until, 0))) FROM job_events WHERE state = 'pending'
          UNION ALL SELECT min(expires_at) FROM jobs WHERE result_kind IS NOT NULL
        )`)
      .pluck()
    const take = 'UPDATE jobs SET lease_owner = @owner, lease_until = @until, fence = fence + 1 WHERE'
    // Of each organization one after another, so that one with many jobs does not keep those of others waiting.
    this.#claim = db
      .prepare<Claim, JobRow>(`
        ${take} id IN (
          SELECT id FROM (
            SELECT id, next_at, row_number() OVER (PARTITION BY org_id ORDER BY next_at) AS place
            FROM jobs WHERE ${RUNNING} AND next_at <= @now AND ${FREE}
          ) ORDER BY place, next_at LIMIT @limit
        ) RETURNING *`)
      .safeIntegers()
    this.#claimOne = db.prepare<Claim, JobRow>(`${take} id = @id AND ${RUNNING} AND ${FREE} RETURNING *`).safeIntegers()
  }

  begin(job: NewJob, target: JobTarget, asked: HoldRequest): Promise<Hold | Exhausted | { readonly existing: Job }> {
    return this.#write('committed', () => {
      const { projectId } = asked.principal
      const before = this.#get.get(job.id)
      if (before) this.#ledger.voidWithin(this.#job(before).hold)
      else if (job.idempotency !== null) {
        const existing = this.#byIdempotency(projectId, job)
        if (existing) return { existing }
      }
      const hold = this.#ledger.holdWithin(asked)
      if ('exhausted' in hold) {
        if (before) this.#forget(job.id)
        return hold
      }
      const { request, principal } = asked
      const row = {
        ...{ model: request.model, provider: request.provider, mapping: target.mapping, region: target.region },
        ...{ credential: target.credential, wire: target.wire, price: target.price, discount: target.discount },
        ...{ hold_id: hold.id, amount: hold.amount, funds: hold.funds, budgets: hold.budgets },
      }
      if (before) this.#update(job.id, row)
      else {
        const { callback } = job
        const sealed = (text: string | undefined, column: string) =>
          text === undefined ? null : sealText(this.#keyring(), text, placeOf(job.id, column))
        this.#insert({
          ...{ id: job.id, kind: job.kind, log_id: request.id, request_id: request.requestId },
          ...{ org_id: principal.orgId, project_id: projectId, key_id: principal.keyId, source: job.source },
          ...{ endpoint: request.endpoint, requested_model: request.requestedModel, params: job.params },
          ...{ state: 'creating', idempotency: job.idempotency, request_hash: job.requestHash },
          ...{ created_at: job.createdAt, deadline_at: job.deadlineAt, next_at: job.deadlineAt },
          callback_url: sealed(callback?.url, 'callback_url'),
          callback_secret: sealed(callback?.secret, 'callback_secret'),
          callback_state: callback ? 'pending' : 'none',
          ...row,
        })
      }
      return hold
    })
  }

  start(id: string, { upstreamId, state, progress, nextAt }: StartedJob): Promise<Job | undefined> {
    return this.#write('durable', () => {
      const row = this.#get.get(id)
      if (row?.state !== 'creating') return undefined
      const started_at = state === 'in_progress' ? row.created_at : null
      this.#update(id, { upstream_id: upstreamId, state, progress, next_at: nextAt, started_at })
      this.#ledger.handOver(row.hold_id)
      return this.#read(id)
    })
  }

  drop(id: string): Promise<void> {
    return this.#write('committed', () => {
      const row = this.#get.get(id)
      if (row?.state !== 'creating') return
      this.#ledger.voidWithin(this.#job(row).hold)
      this.#forget(id)
    })
  }

  interrupt(id: string, error: JobError, event: EndedJob['event'], now: number): Promise<void> {
    return this.#write('durable', () => {
      const row = this.#get.get(id)
      if (row?.state === 'creating') this.#interrupt(row, error, event, now)
    })
  }

  interruptLost(error: JobError, event: (id: string) => EndedJob['event'], now: number): Promise<number> {
    const lost = "SELECT * FROM jobs WHERE state = 'creating' AND NOT EXISTS (SELECT 1 FROM holds WHERE id = hold_id)"
    // Nothing is written while there is nothing to do.
    if (!this.#db.prepare<[], JobRow>(lost).get()) return Promise.resolve(0)
    return this.#write('durable', () => {
      const rows = this.#db.prepare<[], JobRow>(lost).safeIntegers().all()
      for (const row of rows) this.#interrupt(row, error, event(row.id), now)
      return rows.length
    })
  }

  async get(id: string): Promise<Job | undefined> {
    return this.#read(id)
  }

  async byLogId(logId: string): Promise<Job | undefined> {
    const row = this.#db.prepare<[string], JobRow>('SELECT * FROM jobs WHERE log_id = ?').safeIntegers().get(logId)
    return row && this.#job(row)
  }

  async list(
    { orgId = undefined, projectId = undefined }: JobScope,
    kind: string,
    page: Page & { ascending?: boolean },
  ) {
    const { after = null, limit = ALL, ascending = false } = page
    const following = ascending ? OLDEST_FIRST : NEWEST_FIRST
    const rows = this.#db
      .prepare<object, JobRow>(`
        SELECT * FROM jobs
        WHERE kind = @kind AND deleted_at IS NULL AND state <> 'creating'
          AND (@org IS NULL OR org_id = @org) AND (@project IS NULL OR project_id = @project)
          AND ${following} LIMIT @limit`)
      .safeIntegers()
      .all({ kind, org: orgId ?? null, project: projectId ?? null, after, limit })
    return rows.map(row => this.#job(row))
  }

  claim(lease: Lease): Promise<Job[]> {
    return this.#write('committed', () => this.#claim.all(lease).map(row => this.#job(row)))
  }

  claimOne(id: string, lease: Lease): Promise<Job | undefined> {
    return this.#write('committed', () => {
      const row = this.#claimOne.get({ ...lease, id })
      return row && this.#job(row)
    })
  }

  renew(id: string, fence: number, until: number): Promise<boolean> {
    return this.#write('committed', () => this.#update(id, { lease_until: until }, fence))
  }

  move(id: string, fence: number, change: MovedJob): Promise<boolean> {
    return this.#write('committed', () => {
      const row = this.#get.get(id)
      if (!row || !isRunning(row.state)) return false
      const { state, progress } = moved(this.#job(row), change)
      const started_at = row.started_at ?? (state === 'in_progress' ? change.at : null)
      const { nextAt: next_at, failures } = change
      const attempts = row.attempts + 1n
      return this.#update(
        id,
        { state, progress, started_at, next_at, failures, attempts, lease_owner: null, lease_until: null },
        fence,
      )
    })
  }

  end(id: string, fence: number, ended: EndedJob, row: RequestRow): Promise<boolean> {
    return this.#write('durable', () => {
      const before = this.#get.get(id)
      if (!before || !isRunning(before.state) || before.cost !== null) return false
      const { state, error, result, completedAt, expiresAt, event } = ended
      const blob = result?.kind === 'blob' ? result : undefined
      const changes = {
        ...{ state, progress: 100, error: error && JSON.stringify(error), cost: row.cost ?? 0n },
        ...{ settled_at: completedAt, completed_at: completedAt, expires_at: expiresAt },
        ...{ lease_owner: null, lease_until: null, attempts: before.attempts + 1n, result_kind: result?.kind ?? null },
        result_url: result?.kind === 'url' ? sealText(this.#keyring(), result.url, placeOf(id, 'result_url')) : null,
        ...{ result_blob: blob?.blob ?? null, result_type: blob?.type ?? null },
        ...{ result_bytes: blob?.bytes ?? null, result_etag: blob?.etag ?? null },
      }
      if (!this.#update(id, changes, fence)) return false
      this.#ledger.settleWithin(this.#job(before).hold, row)
      if (before.callback_url !== null) this.announce(id, event, completedAt)
      return true
    })
  }

  release(owner: string, now: number): Promise<void> {
    return this.#write('committed', () => {
      this.#db.prepare('UPDATE jobs SET lease_until = ? WHERE lease_owner = ? AND lease_until > ?').run(now, owner, now)
      this.releaseEvents(owner, now)
    })
  }

  async nextAt(): Promise<number | undefined> {
    return this.#nextAt.get() ?? undefined
  }

  expire(id: string, now: number): Promise<Job | undefined> {
    return this.#write('committed', () => {
      const job = this.#read(id)
      if (!job?.result) return undefined
      this.#db.prepare(`UPDATE jobs SET ${NO_RESULT}, expires_at = min(expires_at, ?) WHERE id = ?`).run(now, id)
      return job
    })
  }

  async expireDue(now: number, limit: number): Promise<Job[]> {
    const due = this.#db
      .prepare<[number, number], string>(
        'SELECT id FROM jobs WHERE result_kind IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?',
      )
      .pluck()
      .all(now, limit)
    const gone: Job[] = []
    for (const id of due) {
      const job = await this.expire(id, now)
      if (job) gone.push(job)
    }
    return gone
  }

  remove(id: string, now: number): Promise<Job | undefined> {
    return this.#write('committed', () => {
      const job = this.#read(id)
      if (!job || job.completedAt === null || job.deletedAt !== null) return undefined
      this.#db
        .prepare(
          `UPDATE jobs SET ${NO_RESULT}, callback_url = NULL, callback_secret = NULL, deleted_at = ? WHERE id = ?`,
        )
        .run(now, id)
      return job
    })
  }

  prune(before: number, limit: number): Promise<number> {
    const old = `SELECT id FROM jobs WHERE completed_at < @before AND result_kind IS NULL
      AND NOT EXISTS (SELECT 1 FROM job_events WHERE job_id = jobs.id AND state = 'pending') LIMIT @limit`
    if (!this.#db.prepare<object>(old).get({ before, limit: 1 })) return Promise.resolve(0)
    return this.#write('committed', () => {
      const ids = this.#db.prepare<object, string>(old).pluck().all({ before, limit })
      for (const id of ids) this.#forget(id)
      return ids.length
    })
  }

  async blobs(names: readonly string[]): Promise<Set<string>> {
    const known = this.#db.prepare<[string], string>(
      'SELECT result_blob FROM jobs WHERE result_blob IN (SELECT value FROM json_each(?))',
    )
    return new Set(known.pluck().all(JSON.stringify(names)))
  }

  async status(now: number): Promise<JobsStatus> {
    const count = (sql: string, ...args: unknown[]): Record<string, number> =>
      Object.fromEntries(
        this.#db
          .prepare<unknown[], [string, number]>(sql)
          .raw()
          .all(...args),
      )
    const one = (sql: string, ...args: unknown[]) =>
      this.#db
        .prepare<unknown[], number>(sql)
        .pluck()
        .get(...args)
    const running = "FROM jobs WHERE state IN ('creating', 'queued', 'in_progress')"
    return {
      running: count(`SELECT state, count(*) ${running} GROUP BY state`),
      due: one(`SELECT count(*) FROM jobs WHERE ${RUNNING} AND next_at <= ?`, now) ?? 0,
      leased: count(`SELECT lease_owner, count(*) ${running} AND lease_until > ? GROUP BY lease_owner`, now),
      oldest: one(`SELECT min(created_at) ${running}`) ?? null,
      callbacks: one("SELECT count(*) FROM job_events WHERE state = 'pending'") ?? 0,
    }
  }

  #byIdempotency(projectId: string, { idempotency, createdAt }: NewJob): Job | undefined {
    const same = this.#db
      .prepare<[string, string | null], JobRow>('SELECT * FROM jobs WHERE project_id = ? AND idempotency = ?')
      .safeIntegers()
      .get(projectId, idempotency)
    if (!same) return undefined
    if (Number(same.created_at) > createdAt - IDEMPOTENT_MS) return this.#job(same)
    this.#update(same.id, { idempotency: null })
    return undefined
  }

  #interrupt(row: JobRow, error: JobError, event: EndedJob['event'], now: number): void {
    this.#ledger.voidWithin(this.#job(row).hold)
    const ends = { completed_at: now, settled_at: now, cost: 0n, progress: 100 }
    this.#update(row.id, { state: 'failed', error: JSON.stringify(error), ...ends })
    if (row.callback_url !== null) this.announce(row.id, event, now)
  }

  #read(id: string): Job | undefined {
    const row = this.#get.get(id)
    return row && this.#job(row)
  }

  #job = (row: JobRow): Job => jobOf(row, this.#keyring)

  #insert(row: Record<string, unknown>): void {
    const names = Object.keys(row)
    this.#db
      .prepare(`INSERT INTO jobs (${names.join(', ')}) VALUES (${names.map(name => `@${name}`).join(', ')})`)
      .run(row)
  }

  /** False where the fence is not the newest one. */
  #update(id: string, row: Record<string, unknown>, fence?: number): boolean {
    const sets = Object.keys(row).map(name => `${name} = @${name}`)
    const fenced = fence === undefined ? '' : ' AND fence = @fence'
    const change = this.#db.prepare(`UPDATE jobs SET ${sets.join(', ')} WHERE id = @id${fenced}`)
    return change.run({ ...row, id, ...(fence !== undefined && { fence }) }).changes > 0
  }

  #forget(id: string): void {
    this.#db.prepare('DELETE FROM job_events WHERE job_id = ?').run(id)
    this.#db.prepare('DELETE FROM jobs WHERE id = ?').run(id)
  }

  #write<T>(safety: Durability, work: () => T): Promise<T> {
    return this.#writer.run(work, safety, errors.billingUnavailable)
  }
}
