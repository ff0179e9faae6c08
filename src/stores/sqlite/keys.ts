/** Finds the principal of a key: from memory, until the database changes. */
import type { Statement } from 'better-sqlite3'
import { LRUCache } from 'lru-cache'
import type { KeyStatus, KeyStore, Principal, Role } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import { FairEntries } from '../memory/fair-entries.ts'
import { budgetOf } from '../rules/budgets.ts'
import { isAdmitted, isLiveKey, tokenPrincipal } from '../rules/oauth.ts'
import { planState } from '../rules/plans.ts'
import { BudgetReader } from './budgets.ts'
import { ChangeDetector } from './change-detector.ts'
import type { LiveKeys } from './oauth/live-keys.ts'
import type { Sqlite } from './open.ts'
import { ProjectReader } from './project-reader.ts'
import { planAccount, readSubscription, type SubscriptionRow } from './subscriptions.ts'
import { SPENT, type Sum, sumOf } from './sums.ts'

const MAX_KEYS = 10_000
/** Characters of a session's list of models that count as another key: what is made of the list lives as long as it. */
const CHARACTERS_OF_KEY = 512
const knownKeys = () => new FairEntries<Principal>({ limit: MAX_KEYS })

/** Rows of many columns are lists here, in the order of the query: SQLite's driver takes half as long for them. */
type KeyRow = [
  id: string,
  parentId: string | null,
  models: string | null,
  name: string,
  kind: Principal['kind'],
  expiresAt: number | null,
  projectId: string,
  createdBy: string | null,
  memberId: string | null,
  role: Role | null,
  access: number,
  limited: number,
]
type TokenRow = [keyId: string, scopes: string, expiresAt: number]
/**
 * Owners and admins have access to every project. A session ends with the key that began it, also where that has got an
 * earlier end since. The casts: of a query with joins, SQLite 3.54 makes a new plan for each value of a bare parameter.
 */
const KEY = `
  SELECT keys.id, keys.parent_id, keys.models, keys.name, keys.kind,
    min(coalesce(keys.expires_at, parents.expires_at), coalesce(parents.expires_at, keys.expires_at)),
    keys.project_id, keys.created_by,
    members.id, members.role,
    members.removed_at IS NULL AND (
      members.all_projects = 1 OR members.role <> 'developer' OR EXISTS (
        SELECT 1 FROM member_projects WHERE member_id = members.id AND project_id = keys.project_id
      )
    ),
    EXISTS (SELECT 1 FROM budgets WHERE subject = keys.id)
      OR EXISTS (SELECT 1 FROM budgets WHERE subject = keys.created_by)
      OR EXISTS (SELECT 1 FROM budgets WHERE subject = keys.parent_id)
  FROM keys
  LEFT JOIN keys AS parents ON parents.id = keys.parent_id
  LEFT JOIN members ON members.id = keys.created_by
    AND members.org_id = (SELECT org_id FROM projects WHERE projects.id = keys.project_id)
  WHERE keys.revoked_at IS NULL AND parents.revoked_at IS NULL`

/** What an access token stands for. */
const TOKEN = `
  SELECT grants.key_id, tokens.scopes, tokens.expires_at
  FROM oauth_tokens AS tokens JOIN oauth_grants AS grants ON grants.id = tokens.grant_id
  WHERE tokens.hash = CAST(? AS TEXT) AND tokens.kind = 'access' AND tokens.used_at IS NULL
    AND grants.revoked_at IS NULL`

interface KeyOptions {
  /** Monotonic, in milliseconds. */
  readonly clock?: () => number
  /** Wall clock, Unix milliseconds. */
  readonly now?: () => number
}

/** Principals by the SHA-256 of a key, session secret or access token. `find` throws a 503 where the database fails. */
export class SqliteKeys implements KeyStore, LiveKeys {
  /** In one transaction: what belongs together is as of one moment, and SQLite takes its read lock once. */
  readonly #atOnce: (hash: string) => Principal | undefined
  readonly #find: Statement<[string], KeyRow>
  readonly #byId: Statement<[string], KeyRow>
  readonly #token: Statement<[string], TokenRow>
  readonly #organization: Statement<[string], string>
  readonly #projects: ProjectReader
  readonly #spent: Statement<[string], Sum<'spent'>>
  readonly #budgets: BudgetReader
  readonly #subscription: Statement<[string], SubscriptionRow>
  readonly #changes: ChangeDetector
  readonly #now: () => number
  /** An organization of many keys and sessions does not push out those of others. */
  #known = knownKeys()
  /** Apart from the known, so that guessing does not push them out. */
  readonly #unknown = new LRUCache<string, true>({ max: MAX_KEYS })

  constructor(db: Sqlite, { clock, now = Date.now }: KeyOptions = {}) {
    this.#atOnce = db.transaction((hash: string) => this.#principal(this.#find.get(hash)) ?? this.#ofToken(hash))
    this.#find = db.prepare<[string], KeyRow>(`${KEY} AND keys.hash = CAST(? AS TEXT)`).raw()
    this.#byId = db.prepare<[string], KeyRow>(`${KEY} AND keys.id = CAST(? AS TEXT)`).raw()
    this.#token = db.prepare<[string], TokenRow>(TOKEN).raw()
    this.#organization = db
      .prepare<[string], string>('SELECT org_id FROM keys JOIN projects ON projects.id = project_id WHERE keys.id = ?')
      .pluck()
    this.#projects = new ProjectReader(db)
    this.#budgets = new BudgetReader(db)
    this.#subscription = readSubscription(db)
    this.#spent = db.prepare<[string], Sum<'spent'>>(`SELECT ${SPENT} FROM keys WHERE id = ?`).safeIntegers()
    this.#changes = new ChangeDetector(db, clock)
    this.#now = now
  }

  find(hash: string): Principal | undefined {
    if (this.#changes.poll() !== 'same') this.clear()
    const known = this.#known.get(hash)
    if (known || this.#unknown.get(hash)) return known
    const principal = this.#read(hash)
    if (principal) this.#known.set(principal.orgId, hash, principal, sizeOf(principal), Number.POSITIVE_INFINITY)
    else this.#unknown.set(hash, true)
    return principal
  }

  async status({ keyId, orgId, member }: Principal): Promise<KeyStatus> {
    const now = this.#now()
    const plan = this.#subscription.get(orgId)
    return {
      spent: sumOf(this.#spent.get(keyId)!, 'spent'),
      budgets: this.#budgets.of([keyId, member?.id ?? null], now),
      plan: planState(plan && planAccount(plan), now),
    }
  }

  /** Forgets one key, which is over. */
  forget(hash: string): void {
    this.#known.delete(hash)
  }

  /** Forgets all; for changes of this process, which `data_version` does not count. */
  clear(): void {
    this.#known = knownKeys()
    this.#unknown.clear()
    this.#projects.clear()
  }

  #read(hash: string): Principal | undefined {
    try {
      return this.#atOnce(hash)
    } catch (cause) {
      throw errors.storeUnavailable(cause)
    }
  }

  /** From the database itself, but for what its project shares, which is as old as `ChangeDetector` allows. */
  live(keyId: string): Principal | undefined {
    const principal = this.#current(keyId)
    return principal && isLiveKey(principal, this.#now()) ? principal : undefined
  }

  /** Whether the key, of whatever kind, may be used now. */
  admits(keyId: string): boolean {
    const principal = this.#current(keyId)
    return principal !== undefined && isAdmitted(principal, this.#now())
  }

  #current(keyId: string): Principal | undefined {
    if (this.#changes.poll() !== 'same') this.clear()
    return this.#principal(this.#byId.get(keyId))
  }

  organizationOf(keyId: string): string | undefined {
    return this.#organization.get(keyId)
  }

  #ofToken(hash: string): Principal | undefined {
    const row = this.#token.get(hash)
    if (!row) return undefined
    const [keyId, scopes, expiresAt] = row
    const principal = this.#principal(this.#byId.get(keyId))
    return principal && tokenPrincipal(principal, scopes, expiresAt)
  }

  #principal(row: KeyRow | undefined): Principal | undefined {
    if (!row) return undefined
    const [id, parentId, models, name, kind, expiresAt, projectId, createdBy, memberId, role, access, limited] = row
    const budgets = limited ? this.#budgets.of([id, parentId, memberId], this.#now()) : []
    const project = this.#projects.get(projectId)
    return {
      keyId: parentId ?? id,
      keyName: name,
      kind,
      projectId,
      orgId: project.orgId,
      orgName: project.orgName,
      account: project.account,
      mode: project.mode,
      archived: project.archived,
      cacheTtlMs: project.cacheTtlMs,
      passesParameters: project.passesParameters,
      cachesPrompts: project.cachesPrompts,
      responsesMs: project.responsesMs,
      plan: project.plan,
      discounts: project.discounts,
      retains: project.retains,
      since: project.since,
      expiresAt: expiresAt ?? undefined,
      member: memberId !== null && role !== null ? { id: memberId, role } : undefined,
      access: createdBy === null || (memberId !== null && access !== 0),
      session: parentId === null ? undefined : { id, models: listOf(models) },
      budgets: budgets.map(budgetOf),
    }
  }
}

/** In keys. */
const sizeOf = ({ session }: Principal): number => {
  const characters = session?.models?.reduce((sum, { length }) => sum + length, 0) ?? 0
  return 1 + Math.ceil(characters / CHARACTERS_OF_KEY)
}

const listOf = (text: string | null): string[] | undefined => (text === null ? undefined : JSON.parse(text))
