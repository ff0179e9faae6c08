/** Organizations, projects and their API keys, as the operator changes them. */
import { createHash, randomBytes } from 'node:crypto'
import type { Statement } from 'better-sqlite3'
import { errors, GatewayError } from '../../core/error.ts'
import { shortId } from '../../core/id.ts'
import type { AccountStore, KeyRecord } from '../../core/ports.ts'
import type { Sqlite } from './open.ts'
import type { Writer } from './writer.ts'

interface KeyRow {
  id: string
  project_id: string
  name: string
  preview: string
  created_at: number
  expires_at: number | null
  revoked_at: number | null
  project: string
  organization: string
}
interface ProjectRow {
  id: string
  name: string
  organization: string
}
type NewKey = KeyRecord & { key: string }

/** How many of what exists a refusal names. */
const MAX_NAMED = 20

const KEY_ROWS = `
  SELECT keys.id, keys.project_id, keys.name, keys.preview, keys.created_at, keys.expires_at, keys.revoked_at,
    projects.name AS project, organizations.name AS organization
  FROM keys
  JOIN projects ON projects.id = keys.project_id
  JOIN organizations ON organizations.id = projects.org_id`

export interface AccountOptions {
  /** Wall clock, Unix milliseconds. */
  readonly now: () => number
  /** Called when a change of keys is durable, before its caller hears of it. */
  readonly onKeyChange: () => void
}

export class SqliteAccounts implements AccountStore {
  readonly #writer: Writer
  readonly #options: AccountOptions
  readonly #organizations: Statement<[], number>
  readonly #addOrganization: Statement
  readonly #addProject: Statement
  readonly #addMember: Statement
  readonly #addKey: Statement
  readonly #revoke: Statement
  readonly #keyById: Statement<[string], KeyRow>
  readonly #keys: Statement<[], KeyRow>
  readonly #keysOfProject: Statement<[string], KeyRow>
  readonly #projects: Statement<[], ProjectRow>
  readonly #projectsByIdOrName: Statement<{ wanted: string }, ProjectRow>

  constructor(db: Sqlite, writer: Writer, options: AccountOptions) {
    this.#writer = writer
    this.#options = options
    this.#organizations = db.prepare<[], number>('SELECT count(*) FROM organizations').pluck()
    this.#addOrganization = db.prepare(
      'INSERT INTO organizations (id, name, account, created_at) VALUES (@id, @name, @account, @now)',
    )
    this.#addProject = db.prepare('INSERT INTO projects (id, org_id, name, created_at) VALUES (@id, @org, @name, @now)')
    this.#addMember = db.prepare('INSERT INTO members (id, org_id, email, role) VALUES (@id, @org, @email, @role)')
    this.#addKey = db.prepare(`
      INSERT INTO keys (id, project_id, name, kind, hash, preview, created_at, expires_at)
      VALUES (@id, @project, @name, 'key', @hash, @preview, @now, @expiresAt)`)
    this.#revoke = db.prepare('UPDATE keys SET revoked_at = @now WHERE id = @id AND revoked_at IS NULL')
    this.#keyById = db.prepare(`${KEY_ROWS} WHERE keys.id = ?`)
    this.#keys = db.prepare(`${KEY_ROWS} ORDER BY keys.created_at, keys.rowid`)
    this.#keysOfProject = db.prepare(`${KEY_ROWS} WHERE keys.project_id = ? ORDER BY keys.created_at, keys.rowid`)
    const projects = `
      SELECT projects.id, projects.name, organizations.name AS organization
      FROM projects JOIN organizations ON organizations.id = projects.org_id`
    this.#projects = db.prepare(`${projects} ORDER BY projects.created_at, projects.rowid LIMIT ${MAX_NAMED}`)
    this.#projectsByIdOrName = db.prepare(`${projects} WHERE @wanted IN (projects.id, projects.name)`)
  }

  bootstrap(): Promise<string | undefined> {
    return this.#change(() => {
      if (this.#organizations.get() !== 0) return undefined
      const now = this.#options.now()
      const org = shortId()
      const project = shortId()
      this.#addOrganization.run({ id: org, name: 'default', account: 'open', now })
      this.#addProject.run({ id: project, org, name: 'default', now })
      this.#addMember.run({ id: shortId(), org, email: 'owner@localhost', role: 'owner' })
      return project
    })
  }

  createKey(input: { project: string; name: string; expiresAt?: number | undefined }): Promise<NewKey> {
    return this.#change(() => this.#create(this.#project(input.project).id, input.name, input.expiresAt ?? null))
  }

  async listKeys(project?: string): Promise<KeyRecord[]> {
    const rows = project === undefined ? this.#keys.all() : this.#keysOfProject.all(this.#project(project).id)
    return rows.map(row => this.#record(row))
  }

  revokeKey(id: string): Promise<KeyRecord> {
    return this.#change(() => {
      this.#key(id)
      this.#revoke.run({ id, now: this.#options.now() })
      return this.#record(this.#key(id))
    })
  }

  rollKey(id: string): Promise<NewKey> {
    return this.#change(() => {
      const old = this.#key(id)
      const { status } = this.#record(old)
      if (status !== 'active') throw errors.badRequest(`The key "${id}" is ${status}: create a new one instead.`)
      this.#revoke.run({ id, now: this.#options.now() })
      return this.#create(old.project_id, old.name, old.expires_at)
    })
  }

  #create(project: string, name: string, expiresAt: number | null): NewKey {
    const id = shortId()
    const key = `mgw_${randomBytes(32).toString('base64url')}`
    const hash = createHash('sha256').update(key).digest('hex')
    // Prefix and first characters in one piece would be eight characters of the key.
    const preview = `mgw_…${key.slice(-4)}`
    this.#addKey.run({ id, project, name, hash, preview, now: this.#options.now(), expiresAt })
    return { ...this.#record(this.#key(id)), key }
  }

  #key(id: string): KeyRow {
    const row = this.#keyById.get(id)
    if (!row) throw errors.notFound(`There is no key with the id "${id}". List the keys to see their ids.`)
    return row
  }

  #project(wanted: string): ProjectRow {
    const found = this.#projectsByIdOrName.all({ wanted })
    const project = found.length === 1 ? found[0] : found.find(({ id }) => id === wanted)
    if (project) return project
    if (found.length > 1) {
      throw errors.notFound(`"${wanted}" names ${found.length} projects; give the id of one: ${named(found)}.`)
    }
    const all = this.#projects.all()
    throw errors.notFound(
      `There is no project "${wanted}". ${all.length > 0 ? `There are: ${named(all)}.` : 'There are none yet.'}`,
    )
  }

  #record(row: KeyRow): KeyRecord {
    const expired = row.expires_at !== null && row.expires_at <= this.#options.now()
    return {
      id: row.id,
      name: row.name,
      project: row.project,
      organization: row.organization,
      preview: row.preview,
      status: row.revoked_at !== null ? 'revoked' : expired ? 'expired' : 'active',
      createdAt: new Date(row.created_at).toISOString(),
      expiresAt: row.expires_at === null ? null : new Date(row.expires_at).toISOString(),
    }
  }

  async #change<T>(work: () => T): Promise<T> {
    try {
      return await this.#writer.run(work)
    } catch (cause) {
      throw cause instanceof GatewayError ? cause : errors.storeUnavailable(cause)
    } finally {
      this.#options.onKeyChange()
    }
  }
}

const named = (projects: readonly ProjectRow[]): string =>
  projects.map(({ id, name, organization }) => `${name} (id ${id}, of ${organization})`).join(', ')
