/** Finds the principal of a key: from memory, until the database changes. */
import { LRUCache } from 'lru-cache'
import type { KeyStatus, KeyStore, Principal, Role } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import { upTo } from '../../lib/up-to.ts'
import { FairEntries } from '../memory/fair-entries.ts'
import { budgetOf } from '../rules/budgets.ts'
import { isAdmitted, isLiveKey, tokenPrincipal } from '../rules/oauth.ts'
import { readBudgets } from './budgets.ts'
import type { ChangeSource } from './change-source.ts'
import { readPlan } from './plans.ts'
import { ProjectFactsReader } from './project-facts.ts'
import { readRates } from './rate-limits.ts'
import { type Flag, first, type Sql } from './sql.ts'
import { SPENT, type Sum, sumOf } from './sums.ts'

const MAX_KEYS = 10_000
/** Characters of a session's list of models that count as another key: what is made of the list lives as long as it. */
const CHARACTERS_OF_KEY = 512

interface KeyRow {
  id: string
  parent_id: string | null
  models: string | null
  name: string
  key_name: string
  kind: Principal['kind']
  expires_at: bigint | null
  project_id: string
  created_by: string | null
  member_id: string | null
  role: Role | null
  access: Flag | null
  limited: Flag
  rated: Flag
}
interface TokenRow {
  key_id: string
  scopes: string
  expires_at: bigint
}
/**
 * Owners and admins have access to every project. A session ends with the key that began it, also where that has got an
 * earlier end since. The casts: of a query with joins, SQLite 3.54 makes a new plan for each value of a bare parameter.
 */
const KEY = `
  SELECT keys.id, keys.parent_id, keys.models, keys.name, COALESCE(parents.name, keys.name) AS key_name, keys.kind,
    CASE WHEN keys.expires_at IS NULL OR parents.expires_at < keys.expires_at THEN parents.expires_at
      ELSE keys.expires_at END AS expires_at,
    keys.project_id, keys.created_by,
    members.id AS member_id, members.role,
    members.removed_at IS NULL AND (
      members.all_projects OR members.role <> 'developer' OR EXISTS (
        SELECT 1 FROM member_projects WHERE member_id = members.id AND project_id = keys.project_id
      )
    ) AS access,
    EXISTS (SELECT 1 FROM budgets WHERE subject = keys.id)
      OR EXISTS (SELECT 1 FROM budgets WHERE subject = keys.created_by)
      OR EXISTS (SELECT 1 FROM budgets WHERE subject = keys.project_id)
      OR EXISTS (SELECT 1 FROM budgets WHERE subject = keys.parent_id) AS limited,
    EXISTS (SELECT 1 FROM rate_limits WHERE subject IN (
      keys.id, keys.parent_id, keys.created_by, keys.project_id,
      (SELECT org_id FROM projects WHERE projects.id = keys.project_id)
    )) AS rated
  FROM keys
  LEFT JOIN keys AS parents ON parents.id = keys.parent_id
  LEFT JOIN members ON members.id = keys.created_by
    AND members.org_id = (SELECT org_id FROM projects WHERE projects.id = keys.project_id)
  WHERE keys.revoked_at IS NULL AND parents.revoked_at IS NULL`
const BY_HASH = `${KEY} AND keys.hash = CAST($1 AS text)`
const BY_ID = `${KEY} AND keys.id = CAST($1 AS text)`
/** Selects the grant and key of an access token. */
const TOKEN = `
  SELECT grants.key_id, tokens.scopes, tokens.expires_at
  FROM oauth_tokens AS tokens JOIN oauth_grants AS grants ON grants.id = tokens.grant_id
  WHERE tokens.hash = CAST($1 AS text) AND tokens.kind = 'access' AND tokens.used_at IS NULL
    AND grants.revoked_at IS NULL`
const ORGANIZATION = 'SELECT org_id FROM keys JOIN projects ON projects.id = project_id WHERE keys.id = $1'

/** The principals that are known; a cleared one is replaced, so that what was being read does not enter the next. */
class KnownKeys {
  readonly #known = new FairEntries<Principal>({ limit: MAX_KEYS })
  /** In a room of their own, so that guessing does not push them out. */
  readonly #unknown = new LRUCache<string, true>(upTo(MAX_KEYS))

  /** Reads under way: requests of one key that come together wait for one read. */
  readonly reading = new Map<string, Promise<Principal | undefined>>()

  get(hash: string): Principal | undefined {
    return this.#known.get(hash)
  }

  isUnknown(hash: string): boolean {
    return this.#unknown.get(hash) === true
  }

  set(hash: string, principal: Principal | undefined): void {
    if (principal) this.#known.set(principal.orgId, hash, principal, sizeOf(principal), Number.POSITIVE_INFINITY)
    else this.#unknown.set(hash, true)
  }

  delete(hash: string): void {
    this.#known.delete(hash)
    this.reading.delete(hash)
  }
}

/** `KeyStore` over `keys` and `oauth_tokens`. Its methods with a `Sql` run within that, which may be a transaction. */
export class SqlKeys implements KeyStore {
  readonly #sql: Sql
  readonly #changes: ChangeSource
  readonly #now: () => number
  readonly #projects = new ProjectFactsReader()
  /** Made when it is needed: one takes a millisecond, and changes of keys often follow each other. */
  #known: KnownKeys | undefined

  constructor(sql: Sql, changes: ChangeSource, now: () => number = Date.now) {
    this.#sql = sql
    this.#changes = changes
    this.#now = now
  }

  find(hash: string): Principal | undefined | Promise<Principal | undefined> {
    this.#poll()
    this.#known ??= new KnownKeys()
    const known = this.#known.get(hash)
    if (known || this.#known.isUnknown(hash)) return known
    const { reading } = this.#known
    let read = reading.get(hash)
    if (!read) {
      read = this.#read(hash, this.#known).finally(() => reading.delete(hash))
      reading.set(hash, read)
    }
    return read
  }

  async status({ keyId, orgId, projectId, member }: Principal): Promise<KeyStatus> {
    const now = this.#now()
    const text = `SELECT ${SPENT} FROM keys WHERE id = $1`
    const [spent, budgets, plan] = await Promise.all([
      first<Sum<'spent'>>(this.#sql, text, [keyId]),
      readBudgets(this.#sql, [keyId, member?.id ?? null, projectId], now),
      readPlan(this.#sql, orgId, now),
    ])
    return { spent: sumOf(spent!, 'spent'), budgets, plan }
  }

  /** Forgets one key, which is over. */
  forget(hash: string): void {
    this.#known?.delete(hash)
  }

  /** Forgets all; for changes of this process. */
  clear(): void {
    this.#known = undefined
    this.#projects.clear()
  }

  /** Reads the principal of a regular key that may be used now; what its project shares is as old as `ChangeSource` allows. */
  async live(sql: Sql, keyId: string): Promise<Principal | undefined> {
    const principal = await this.#current(sql, keyId)
    return principal && isLiveKey(principal, this.#now()) ? principal : undefined
  }

  /** Whether the key, of whatever kind, may be used now. */
  async admits(keyId: string): Promise<boolean> {
    const principal = await this.#current(this.#sql, keyId)
    return principal !== undefined && isAdmitted(principal, this.#now())
  }

  /** Reads the organization of a key of any status. */
  async organizationOf(sql: Sql, keyId: string): Promise<string | undefined> {
    return (await first<{ org_id: string }>(sql, ORGANIZATION, [keyId]))?.org_id
  }

  #poll(): void {
    if (this.#changes.poll() !== 'same') this.clear()
  }

  async #read(hash: string, known: KnownKeys): Promise<Principal | undefined> {
    try {
      const row = await first<KeyRow>(this.#sql, BY_HASH, [hash])
      const principal = row ? await this.#principal(this.#sql, row) : await this.#ofToken(hash)
      known.set(hash, principal)
      return principal
    } catch (cause) {
      throw errors.storeUnavailable(cause)
    }
  }

  async #current(sql: Sql, keyId: string): Promise<Principal | undefined> {
    this.#poll()
    return this.#byId(sql, keyId)
  }

  async #byId(sql: Sql, keyId: string): Promise<Principal | undefined> {
    const row = await first<KeyRow>(sql, BY_ID, [keyId])
    return row && this.#principal(sql, row)
  }

  async #ofToken(hash: string): Promise<Principal | undefined> {
    const row = await first<TokenRow>(this.#sql, TOKEN, [hash])
    const principal = row && (await this.#byId(this.#sql, row.key_id))
    return principal && tokenPrincipal(principal, row.scopes, Number(row.expires_at))
  }

  async #principal(sql: Sql, row: KeyRow): Promise<Principal> {
    const { id, parent_id: parentId, created_by: createdBy, member_id: memberId, role } = row
    const limited = [id, parentId, memberId, row.project_id]
    const budgets = row.limited ? await readBudgets(sql, limited, this.#now()) : []
    const project = await this.#projects.read(sql, row.project_id)
    const subjects = [parentId ?? id, memberId, row.project_id, project.orgId] as const
    return {
      keyId: parentId ?? id,
      keyName: row.key_name,
      kind: row.kind,
      projectId: row.project_id,
      ...project,
      expiresAt: row.expires_at === null ? undefined : Number(row.expires_at),
      member: memberId !== null && role !== null ? { id: memberId, role } : undefined,
      access: createdBy === null || (memberId !== null && Boolean(row.access)),
      session: parentId === null ? undefined : { id, models: listOf(row.models) },
      // A session is named after its end user.
      endUser: parentId === null ? undefined : row.name,
      budgets: budgets.map(budgetOf),
      rates: row.rated ? await readRates(sql, subjects) : undefined,
    }
  }
}

/** In keys. */
const sizeOf = ({ session }: Principal): number => {
  const characters = session?.models?.reduce((sum, { length }) => sum + length, 0) ?? 0
  return 1 + Math.ceil(characters / CHARACTERS_OF_KEY)
}

const listOf = (text: string | null): string[] | undefined => (text === null ? undefined : JSON.parse(text))
