/** What the store tests work on: stores on a fresh file, a clock, and a second connection that sees behind the ports. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HoldRequest, Principal, RequestRow, Stores } from '../../src/core/ports.ts'
import { Database, type Sqlite } from '../../src/stores/sqlite/driver.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { principalOf } from '../core/principal.ts'

interface Scope {
  teardown(end: () => unknown): void
}

export const HOUR = 3_600_000
export const NOON = Date.UTC(2026, 0, 2, 12)

/** Stores with whatever a contract needs besides the ports. */
export interface Subject extends Stores {
  /** What the stores take for the wall clock. */
  clock: { now: number }
  /** A new organization with one project and one key, whose balance is `credits`. */
  organization(account: Principal['account'], credits: bigint): Promise<Principal>
}
export interface SqliteSubject extends Subject {
  readonly path: string
  /** A connection of its own, as another process would have. */
  readonly db: Sqlite
}

export function temporaryFolder(t: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-stores-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function sqliteSubject(t: Scope): SqliteSubject {
  const path = join(temporaryFolder(t), 'gateway.db')
  const clock = { now: NOON }
  const stores = openSqlite(path, { now: () => clock.now })
  const db = new Database(path)
  t.teardown(async () => {
    db.close()
    await stores.close()
  })
  return { ...stores, path, db, clock, organization: async (account, credits) => seed(db, account, credits) }
}

let seeded = 0

/** Writes an organization, its project, its key and its credits past the ports. */
export function seed(db: Sqlite, account: Principal['account'], credits: bigint): Principal {
  const n = ++seeded
  const principal = principalOf({
    keyId: `key-${n}`,
    keyName: 'a key',
    projectId: `project-${n}`,
    orgId: `org-${n}`,
    orgName: `org-${n}`,
    account,
  })
  const { keyId, projectId, orgId } = principal
  db.prepare('INSERT INTO organizations (id, name, account, created_at) VALUES (?, ?, ?, 0)').run(orgId, orgId, account)
  db.prepare('INSERT INTO projects (id, org_id, name, created_at) VALUES (?, ?, ?, 0)').run(projectId, orgId, projectId)
  db.prepare(
    "INSERT INTO keys (id, project_id, name, kind, hash, preview, created_at) VALUES (?, ?, 'a key', 'key', ?, '', 0)",
  ).run(keyId, projectId, keyId)
  if (credits !== 0n) topUp(db, orgId, credits, `topup-${n}`)
  return principal
}

export function topUp(db: Sqlite, orgId: string, amount: bigint, reference: string): void {
  db.transaction(() => {
    db.prepare("INSERT INTO ledger (org_id, request_id, kind, amount, created_at) VALUES (?, ?, 'topup', ?, 0)").run(
      orgId,
      reference,
      amount,
    )
    db.prepare('UPDATE balances SET balance = balance + ? WHERE org_id = ?').run(amount, orgId)
  }).immediate()
}

/** The row of a request that succeeded. */
export const rowOf = (principal: Principal, id: string, changes: Partial<RequestRow> = {}): RequestRow => ({
  id,
  requestId: `caller-${id}`,
  at: NOON,
  orgId: principal.orgId,
  projectId: principal.projectId,
  keyId: principal.keyId,
  endpoint: 'chat',
  requestedModel: 'large',
  model: 'large',
  provider: 'acme',
  source: 'an-app',
  status: 200,
  outcome: 'ok',
  errorCode: null,
  streamed: false,
  cached: false,
  attempts: 1,
  durationMs: 812.25,
  ttftMs: null,
  usage: { prompt: 100, completion: 20, input_cache_read: 60, internal_reasoning: 5 },
  estimated: false,
  cost: 300n,
  storage: 0n,
  discount: 0,
  tier: null,
  ...changes,
})

/** What a hold knows of the request with this id. */
export const identity = (id: string): HoldRequest['request'] => ({
  id,
  requestId: `caller-${id}`,
  endpoint: 'chat',
  requestedModel: 'large',
  model: 'large',
  provider: 'acme',
})

/** Asks for a hold of the request with the same id. */
export const hold = ({ ledger }: Pick<Subject, 'ledger'>, principal: Principal, id: string, amount: bigint) =>
  ledger.hold({ id, request: identity(id), principal, amount, expiresAt: NOON + HOUR })

/** The one value that a statement yields. */
export const integer = (db: Sqlite, sql: string): number => db.prepare<[], number>(sql).pluck().get() ?? 0
