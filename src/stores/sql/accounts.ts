/** First start, and operators' changes of API keys. */
import type { AccountStore, Actor, KeyChanges, KeyKind, KeyRecord, NewKey, Page } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { checkRoll, expiryOf, keyStatus } from '../rules/accounts.ts'
import { newSecret } from '../secret.ts'
import type { AuditedTransaction, Change } from './audit.ts'
import { changeLimit, changingLimit, limitsOf, moveLimits, takeSpending } from './limits.ts'
import { changeRates, moveRates, rateLimitsOf, ratesOf } from './rate-limits.ts'
import { type Flag, first, isAfter, isoOf, pageOf, type Sql } from './sql.ts'
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
  limited: Flag
  rates: string | null
}
type MadeKey = KeyRecord & { key: string; found?: true }
/** Properties that a key inherits from its predecessor, `succeeds`. */
type Heir = Pick<KeyRow, 'project_id' | 'name' | 'kind' | 'created_by'> & {
  expires_at: bigint | number | null
  succeeds: string | null
}

/** Actor of changes without an operator. */
export const GATEWAY: Actor = 'gateway'

const ROWS = `
  SELECT keys.id, keys.project_id, projects.org_id, keys.name, keys.kind, keys.preview, keys.created_by,
    keys.created_at, keys.expires_at, keys.revoked_at, keys.parent_id, projects.name AS project,
    organizations.name AS organization, members.email AS creator,
    ${SPENT},
    EXISTS (SELECT 1 FROM budgets WHERE subject = keys.id) AS limited,
    ${ratesOf('keys.id')}
  FROM keys
  JOIN projects ON projects.id = keys.project_id
  JOIN organizations ON organizations.id = projects.org_id
  LEFT JOIN members ON members.id = keys.created_by`
const PAGE = `WHERE parent_id IS NULL AND ${isAfter('keys', 1)}`
const KEYS = `${ROWS} ${PAGE} ORDER BY keys.rowid LIMIT $2`
const KEYS_OF_PROJECT = `${ROWS} ${PAGE} AND keys.project_id = $3 ORDER BY keys.rowid LIMIT $2`
const INSERT = `
  INSERT INTO keys (id, project_id, name, kind, created_by, expires_at, succeeds, hash, preview, created_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
/** SQL: adds an organization that may overdraw its balance, and a project. */
export const ADD_ORGANIZATION = "INSERT INTO organizations (id, name, account, created_at) VALUES ($1, $2, 'open', $3)"
export const ADD_PROJECT = 'INSERT INTO projects (id, org_id, name, created_at) VALUES ($1, $2, $3, $4)'
const ANY = 'SELECT id FROM organizations LIMIT 1'
const FOUND = 'SELECT id FROM keys WHERE hash = $1'
const REVOKE = 'UPDATE keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL'

/** `AccountStore` over `keys`. Records never contain a secret: a new key is shown once, by its caller. */
export class SqlAccounts implements AccountStore {
  readonly #changes: AuditedTransaction

  constructor(changes: AuditedTransaction) {
    this.#changes = changes
  }

  async bootstrap(): Promise<MadeKey | undefined> {
    // A change would empty the caches of all nodes whenever one starts.
    if (await this.#changes.read(() => first(this.#changes.sql, ANY))) return undefined
    return this.#changes.run(async change => {
      const { sql, note } = change
      if (await first(sql, ANY)) return undefined
      const now = this.#changes.now()
      const [org, project] = [shortId(), shortId()]
      const [organization, owner] = ['default', 'owner@localhost']
      await sql.query(ADD_ORGANIZATION, [org, organization, now])
      await sql.query(ADD_PROJECT, [project, org, 'default', now])
      await sql.query("INSERT INTO members (id, org_id, email, role, created_at) VALUES ($1, $2, $3, 'owner', $4)", [
        ...[shortId(), org, owner, now],
      ])
      const became = { name: organization, account: 'open', project: 'default', owner }
      await note({ actor: GATEWAY, action: 'bootstrap', organization: org, subject: org, was: null, became })
      return this.#make(change, { project, name: 'default' }, GATEWAY)
    })
  }

  createKey(input: NewKey, actor: Actor = GATEWAY): Promise<MadeKey> {
    return this.#changes.run(change => this.#make(change, input, actor))
  }

  listKeys(project?: string, page?: Page): Promise<KeyRecord[]> {
    const { after, limit } = pageOf(page)
    const { sql, names } = this.#changes
    return this.#changes.read(async () => {
      const rows =
        project === undefined
          ? await sql.query<KeyRow>(KEYS, [after, limit])
          : await sql.query<KeyRow>(KEYS_OF_PROJECT, [after, limit, (await names.project(project)).id])
      return Promise.all(rows.map(row => this.#record(sql, row)))
    })
  }

  showKey(id: string): Promise<KeyRecord> {
    const { sql, names } = this.#changes
    return this.#changes.read(async () => this.#record(sql, await rowIn(sql, await names.key(id))))
  }

  updateKey(id: string, { name, expiresAt, limit, rates }: KeyChanges, actor: Actor = GATEWAY): Promise<KeyRecord> {
    return this.#change(id, 'keys.update', actor, async (sql, row) => {
      const end = expiresAt === undefined ? row.expires_at : expiresAt
      const change = limit && (await changingLimit(sql, 'key', id, limit, this.#changes.now()))
      await sql.query('UPDATE keys SET name = $2, expires_at = $3 WHERE id = $1', [id, name ?? row.name, end])
      await change?.()
      await changeRates(sql, id, rates)
    })
  }

  revokeKey(id: string, actor: Actor = GATEWAY): Promise<KeyRecord> {
    return this.#change(id, 'keys.revoke', actor, sql => sql.query(REVOKE, [id, this.#changes.now()]))
  }

  rollKey(id: string, actor: Actor = GATEWAY): Promise<MadeKey> {
    return this.#changes.run(async ({ sql, names, note }) => {
      const old = await rowIn(sql, await names.key(id))
      const was = await this.#record(sql, old)
      checkRoll(id, old.parent_id !== null, was.status)
      await sql.query(REVOKE, [id, this.#changes.now()])
      const { project_id, name, kind, created_by, expires_at, org_id: organization } = old
      const next = await this.#create(sql, { project_id, name, kind, created_by, expires_at, succeeds: id })
      await moveLimits(sql, id, next.id)
      await moveRates(sql, id, next.id)
      await sql.query('UPDATE rules SET key_id = $2 WHERE key_id = $1', [id, next.id])
      const became = await this.#record(sql, await rowIn(sql, next.id))
      await note({ actor, action: 'keys.roll', organization, subject: id, was, became })
      return { ...became, key: next.key }
    })
  }

  async #make({ sql, names, note }: Change, input: NewKey, actor: Actor): Promise<MadeKey> {
    const { name, kind = 'key', createdBy, limit, rates, past } = input
    const there = past && (await first<{ id: string }>(sql, FOUND, [input.hash ?? null]))
    if (there) return { ...(await this.#record(sql, await rowIn(sql, there.id))), key: '', found: true }
    const now = this.#changes.now()
    const { id: project_id, org_id: organization } = await names.project(input.project)
    const expires_at = expiryOf(kind, input.expiresAt, now)
    const created_by = createdBy === undefined ? null : (await names.member(organization, createdBy)).id
    const { id, key } = await this.#create(
      sql,
      { project_id, name, kind, created_by, expires_at, succeeds: null },
      input.hash,
      past?.preview,
    )
    if (limit) await changeLimit(sql, 'key', id, { set: limit }, now)
    await changeRates(sql, id, rates)
    if (past) await takeSpending(sql, id, past.spent)
    if (past?.revoked) await sql.query(REVOKE, [id, now])
    const became = await this.#record(sql, await rowIn(sql, id))
    await note({ actor, action: 'keys.create', organization, subject: id, was: null, became })
    return { ...became, key }
  }

  async #create(
    sql: Sql,
    { project_id, name, kind, created_by, expires_at, succeeds }: Heir,
    given?: string,
    shown = '',
  ) {
    const id = shortId()
    const { key, hash, preview } = given === undefined ? newSecret(kind) : { key: '', hash: given, preview: shown }
    const facts = [id, project_id, name, kind, created_by, expires_at, succeeds]
    await sql.query(INSERT, [...facts, hash, preview, this.#changes.now()])
    return { id, key }
  }

  #change(
    id: string,
    action: string,
    actor: Actor,
    work: (sql: Sql, row: KeyRow) => Promise<unknown>,
  ): Promise<KeyRecord> {
    return this.#changes.run(async ({ sql, names, note }) => {
      const row = await rowIn(sql, await names.key(id))
      const was = await this.#record(sql, row)
      await work(sql, row)
      const became = await this.#record(sql, await rowIn(sql, id))
      await note({ actor, action, organization: row.org_id, subject: id, was, became })
      return became
    })
  }

  async #record(sql: Sql, row: KeyRow): Promise<KeyRecord> {
    const now = this.#changes.now()
    const expiresAt = row.expires_at === null ? null : Number(row.expires_at)
    return {
      id: row.id,
      name: row.name,
      kind: row.kind,
      project: row.project,
      organization: row.organization,
      preview: row.preview,
      status: keyStatus({ revoked: row.revoked_at !== null, expiresAt }, now),
      createdBy: row.creator,
      createdAt: isoOf(row.created_at),
      expiresAt: row.expires_at === null ? null : isoOf(row.expires_at),
      limits: row.limited ? await limitsOf(sql, row.id, now) : [],
      spent: sumOf(row, 'spent'),
      ...rateLimitsOf(row.rates),
    }
  }
}

async function rowIn(sql: Sql, id: string): Promise<KeyRow> {
  const row = await first<KeyRow>(sql, `${ROWS} WHERE keys.id = $1`, [id])
  return row!
}
