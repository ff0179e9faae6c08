/** What the store tests work on: fresh stores and a clock; of SQLite also a connection that sees behind the ports. */
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HoldRequest, Principal, RequestRow, Stores } from '../../src/core/ports.ts'
import { Keyring } from '../../src/stores/keyring.ts'
import { SqlKeys } from '../../src/stores/sql/keys.ts'
import { PolicyFactsReader } from '../../src/stores/sql/policy-facts.ts'
import { SqliteSql } from '../../src/stores/sql/sqlite.ts'
import { ChangeDetector } from '../../src/stores/sqlite/change-detector.ts'
import { Database, type Sqlite } from '../../src/stores/sqlite/driver.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { Writer } from '../../src/stores/sqlite/writer.ts'
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
  /** A new organization with one project and one key, whose balance is `credits`: the principal of that key. */
  organization(account: Principal['account'], credits: bigint): Promise<Principal>
  /** Runs a statement past the ports, where another connection can open the database. */
  exec?(sql: string): unknown
}
/** Makes stores of one kind for a test, which are closed when it ends. */
export type MakeSubject = (t: Scope) => Subject | Promise<Subject>
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

/** A database as its first start leaves it: all its migrations take as long as a contract's test. */
const newFile = await (async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-stores-'))
  const path = join(folder, 'gateway.db')
  await openSqlite(path).close()
  const bytes = readFileSync(path)
  rmSync(folder, { recursive: true })
  return bytes
})()

export function sqliteSubject(t: Scope): SqliteSubject {
  const path = join(temporaryFolder(t), 'gateway.db')
  const clock = { now: NOON }
  writeFileSync(path, newFile)
  const stores = openSqlite(path, { now: () => clock.now })
  const db = new Database(path)
  t.teardown(async () => {
    db.close()
    await stores.close()
  })
  return { ...stores, path, db, clock, exec: sql => db.exec(sql), organization: organizationsIn(stores) }
}

/** The keys and policies of a database as another process reads them. */
export function readersOf(db: Sqlite, clock?: () => number) {
  const sql = new SqliteSql(db, new Writer(db))
  return {
    sql,
    keys: new SqlKeys(sql, new ChangeDetector(db, clock)),
    policies: new PolicyFactsReader(sql, new ChangeDetector(db, clock)),
  }
}

/** A folder of memory on Linux, where a copy of a new database takes a tenth of the time of its migrations. */
const MEMORY = '/dev/shm'

/** Stores on a database in memory: their writes wait for no disk. */
export function memorySubject(t: Scope): Subject {
  const clock = { now: NOON }
  const ring = new Keyring({ given: randomBytes(32).toString('base64url'), file: '' })
  const folder = existsSync(MEMORY) ? mkdtempSync(join(MEMORY, 'gateway-stores-')) : undefined
  const path = folder ? join(folder, 'gateway.db') : ':memory:'
  if (folder) writeFileSync(path, newFile)
  const stores = openSqlite(path, { now: () => clock.now, keyring: () => ring })
  t.teardown(async () => {
    await stores.close()
    if (folder) rmSync(folder, { recursive: true })
  })
  return { ...stores, clock, organization: organizationsIn(stores) }
}

/** Resolves when the writes asked for so far are done: the store groups writes and runs them in order. */
export async function written({ jobs }: Pick<Stores, 'jobs'>): Promise<void> {
  await jobs.renew('no job', 0, 0)
}

/** Who makes what tests begin with, as the audit log names them. */
const SEED = 'seed'

/** Makes organizations through the ports. Their names, and those of their projects, count up. */
export function organizationsIn({
  organizations,
  projects,
  accounts,
  credits,
  keys,
}: Pick<Stores, 'organizations' | 'projects' | 'accounts' | 'credits' | 'keys'>): Subject['organization'] {
  let made = 0
  return async (account, balance) => {
    const n = ++made
    const { id: organization } = await organizations.create({ name: `org-${n}`, account: 'open' }, SEED)
    const { id: project } = await projects.create({ organization, name: `project-${n}` }, SEED)
    const { key } = await accounts.createKey({ project, name: 'a key' }, SEED)
    if (balance > 0n) await credits.add({ organization, amount: balance }, SEED)
    if (balance < 0n) await credits.refund({ organization, amount: -balance }, SEED)
    if (account === 'prepaid') await organizations.update(organization, { account }, SEED)
    return (await keys.find(createHash('sha256').update(key).digest('hex')))!
  }
}

let seeded = 0

/** Writes an organization, its project, its key and its credits past the ports, for tests of a database alone. */
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
