/** First start, and operators' changes of API keys. */
import type { Statement } from 'better-sqlite3'
import type { AccountStore, Actor, KeyChanges, KeyKind, KeyRecord, NewKey, Page } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { checkRoll, expiryOf, keyStatus } from '../rules/accounts.ts'
import { newSecret } from '../secret.ts'
import type { AuditedTransaction } from './audited-transaction.ts'
import { Limits } from './limits.ts'
import type { Sqlite } from './open.ts'
import { type PageRow, pageOf } from './page.ts'
import { SqliteRules } from './policy-rules.ts'
import { SPENT, type Sum, sumOf } from './sums.ts'

interface KeyRow extends Sum<'spent'> {
  id: string
  project_id: string
  org_id: string
  name: string
  kind: KeyKind
  preview: string
  created_by: string | null
  created_at: bigint
  expires_at: bigint | null
  revoked_at: bigint | null
  project: string
  organization: string
  creator: string | null
  parent_id: string | null
  limited: bigint
}
type MadeKey = KeyRecord & { key: string }
/** Properties that a key inherits from its predecessor, `succeeds`. */
type Heir = Pick<KeyRow, 'project_id' | 'name' | 'kind' | 'created_by'> & {
  expires_at: bigint | number | null
  succeeds: string | null
}

/** Actor of changes without an operator. */
const GATEWAY: Actor = 'gateway'

const KEY_ROWS = `
  SELECT keys.id, keys.project_id, projects.org_id, keys.name, keys.kind, keys.preview, keys.created_by,
    keys.created_at, keys.expires_at, keys.revoked_at, keys.parent_id, projects.name AS project,
    organizations.name AS organization, members.email AS creator,
    ${SPENT},
    EXISTS (SELECT 1 FROM budgets WHERE subject = keys.id) AS limited
  FROM keys
  JOIN projects ON projects.id = keys.project_id
  JOIN organizations ON organizations.id = projects.org_id
  LEFT JOIN members ON members.id = keys.created_by`

const LISTED = `
  parent_id IS NULL
  AND keys.rowid > CASE WHEN @after IS NULL THEN 0 ELSE (SELECT rowid FROM keys WHERE id = @after) END`

/** `AccountStore` over `keys`. Records never contain a secret: a new key is shown once, by its caller. */
export class SqliteAccounts implements AccountStore {
  readonly #changes: AuditedTransaction
  readonly #limits: Limits
  readonly #rules: SqliteRules
  readonly #organizations: Statement<[], number>
  readonly #addOrganization: Statement
  readonly #addProject: Statement
  readonly #addMember: Statement
  readonly #addKey: Statement
  readonly #updateKey: Statement
  readonly #revoke: Statement
  readonly #keyById: Statement<[string], KeyRow>
  readonly #keys: Statement<PageRow, KeyRow>
  readonly #keysOfProject: Statement<PageRow & { project: string }, KeyRow>

  constructor(db: Sqlite, changes: AuditedTransaction) {
    this.#changes = changes
    this.#limits = new Limits(db, changes.now)
    this.#rules = new SqliteRules(db, changes)
    this.#organizations = db.prepare<[], number>('SELECT count(*) FROM organizations').pluck()
    this.#addOrganization = db.prepare(
      'INSERT INTO organizations (id, name, account, created_at) VALUES (@id, @name, @account, @now)',
    )
    this.#addProject = db.prepare('INSERT INTO projects (id, org_id, name, created_at) VALUES (@id, @org, @name, @now)')
    this.#addMember = db.prepare(
      'INSERT INTO members (id, org_id, email, role, created_at) VALUES (@id, @org, @email, @role, @now)',
    )
    this.#addKey = db.prepare(`
      INSERT INTO keys (id, project_id, name, kind, hash, preview, created_by, created_at, expires_at, succeeds)
      VALUES (@id, @project, @name, @kind, @hash, @preview, @createdBy, @now, @expiresAt, @succeeds)`)
    this.#updateKey = db.prepare('UPDATE keys SET name = @name, expires_at = @expiresAt WHERE id = @id')
    this.#revoke = db.prepare('UPDATE keys SET revoked_at = @now WHERE id = @id AND revoked_at IS NULL')
    this.#keyById = db.prepare<[string], KeyRow>(`${KEY_ROWS} WHERE keys.id = ?`).safeIntegers()
    this.#keys = db
      .prepare<PageRow, KeyRow>(`${KEY_ROWS} WHERE ${LISTED} ORDER BY keys.rowid LIMIT @limit`)
      .safeIntegers()
    this.#keysOfProject = db
      .prepare<PageRow & { project: string }, KeyRow>(
        `${KEY_ROWS} WHERE keys.project_id = @project AND ${LISTED} ORDER BY keys.rowid LIMIT @limit`,
      )
      .safeIntegers()
  }

  bootstrap(): Promise<MadeKey | undefined> {
    return this.#changes.run(() => {
      if (this.#organizations.get() !== 0) return undefined
      const { now } = this.#changes
      const org = shortId()
      const project = shortId()
      this.#addOrganization.run({ id: org, name: 'default', account: 'open', now: now() })
      this.#addProject.run({ id: project, org, name: 'default', now: now() })
      this.#addMember.run({ id: shortId(), org, email: 'owner@localhost', role: 'owner', now: now() })
      const became = { name: 'default', account: 'open', project: 'default', owner: 'owner@localhost' }
      this.#changes.note({ actor: GATEWAY, action: 'bootstrap', organization: org, subject: org, was: null, became })
      return this.#make({ project, name: 'default' }, GATEWAY)
    })
  }

  createKey(input: NewKey, actor: Actor = GATEWAY): Promise<MadeKey> {
    return this.#changes.run(() => this.#make(input, actor))
  }

  async listKeys(project?: string, page?: Page): Promise<KeyRecord[]> {
    const part = pageOf(page)
    const of = project === undefined ? undefined : this.#changes.directory.project(project).id
    const rows = of === undefined ? this.#keys.all(part) : this.#keysOfProject.all({ ...part, project: of })
    return rows.map(row => this.#record(row))
  }

  updateKey(id: string, { name, expiresAt, limit }: KeyChanges, actor: Actor = GATEWAY): Promise<KeyRecord> {
    return this.#change(id, 'keys.update', actor, row => {
      this.#updateKey.run({
        id,
        name: name ?? row.name,
        expiresAt: expiresAt === undefined ? row.expires_at : expiresAt,
      })
      if (limit) this.#limits.change('key', id, limit)
    })
  }

  revokeKey(id: string, actor: Actor = GATEWAY): Promise<KeyRecord> {
    return this.#change(id, 'keys.revoke', actor, () => this.#revoke.run({ id, now: this.#changes.now() }))
  }

  rollKey(id: string, actor: Actor = GATEWAY): Promise<MadeKey> {
    return this.#changes.run(() => {
      const old = this.#key(id)
      const was = this.#record(old)
      checkRoll(id, old.parent_id !== null, was.status)
      this.#revoke.run({ id, now: this.#changes.now() })
      const { project_id, name, kind, created_by, expires_at } = old
      const next = this.#create({ project_id, name, kind, created_by, expires_at, succeeds: id })
      this.#limits.move(id, next.id)
      this.#rules.move(id, next.id)
      const became = this.#record(this.#key(next.id))
      this.#changes.note({ actor, action: 'keys.roll', organization: old.org_id, subject: id, was, became })
      return { ...became, key: next.key }
    })
  }

  /** Within a transaction. */
  #make(input: NewKey, actor: Actor): MadeKey {
    const { directory, now } = this.#changes
    const { name, kind = 'key', createdBy, limit } = input
    const project = directory.project(input.project)
    const expires_at = expiryOf(kind, input.expiresAt, now())
    const created_by = createdBy === undefined ? null : directory.member(project.org_id, createdBy).id
    const { id, key } = this.#create({
      project_id: project.id,
      name,
      kind,
      created_by,
      expires_at,
      succeeds: null,
    })
    if (limit) this.#limits.change('key', id, { set: limit })
    const became = this.#record(this.#key(id))
    this.#changes.note({ actor, action: 'keys.create', organization: project.org_id, subject: id, was: null, became })
    return { ...became, key }
  }

  /** Within a transaction. */
  #create({ project_id, name, kind, created_by, expires_at, succeeds }: Heir): { id: string; key: string } {
    const id = shortId()
    const { key, hash, preview } = newSecret(kind)
    const facts = { id, project: project_id, name, kind, hash, preview, createdBy: created_by, succeeds }
    this.#addKey.run({ ...facts, now: this.#changes.now(), expiresAt: expires_at })
    return { id, key }
  }

  #change(id: string, action: string, actor: Actor, work: (row: KeyRow) => void): Promise<KeyRecord> {
    return this.#changes.run(() => {
      const row = this.#key(id)
      const was = this.#record(row)
      work(row)
      const became = this.#record(this.#key(id))
      this.#changes.note({ actor, action, organization: row.org_id, subject: id, was, became })
      return became
    })
  }

  #key(id: string): KeyRow {
    return this.#keyById.get(this.#changes.directory.key(id))!
  }

  #record(row: KeyRow): KeyRecord {
    const expiresAt = row.expires_at === null ? null : Number(row.expires_at)
    return {
      id: row.id,
      name: row.name,
      kind: row.kind,
      project: row.project,
      organization: row.organization,
      preview: row.preview,
      status: keyStatus({ revoked: row.revoked_at !== null, expiresAt }, this.#changes.now()),
      createdBy: row.creator,
      createdAt: iso(row.created_at),
      expiresAt: row.expires_at === null ? null : iso(row.expires_at),
      limits: row.limited ? this.#limits.of(row.id) : [],
      spent: sumOf(row, 'spent'),
    }
  }
}

const iso = (at: bigint): string => new Date(Number(at)).toISOString()
