/** Operators' changes of the rules of organizations, members and keys. */
import type { Statement } from 'better-sqlite3'
import type { RuleType, RuleValue } from '../../core/policy.ts'
import type { Actor, Page, RuleRecord, RuleScope, RuleStore } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { ruleValue } from '../../policy/rule-value.ts'
import { noSuch } from '../rules/names.ts'
import { checkRules, checkScope, ruleOwner } from '../rules/policies.ts'
import type { AuditedTransaction } from './audited-transaction.ts'
import type { Sqlite } from './open.ts'
import { type PageRow, pageOf } from './page.ts'

interface RuleRow {
  id: string
  org_id: string
  organization: string
  key_id: string | null
  email: string | null
  type: string
  value: string
  active: number
  created_at: number
}
interface Scope {
  org: string | null
  member: string | null
  key: string | null
}

const RULES = `
  SELECT rules.id, rules.org_id, organizations.name AS organization, key_id, members.email, type, value, active,
    rules.created_at
  FROM rules
  JOIN organizations ON organizations.id = rules.org_id
  LEFT JOIN members ON members.id = rules.member_id`

/** `RuleStore` over `rules`. */
export class SqliteRules implements RuleStore {
  readonly #changes: AuditedTransaction
  readonly #insert: Statement
  readonly #setStatus: Statement
  readonly #delete: Statement
  readonly #move: Statement
  readonly #byId: Statement<[string], RuleRow>
  readonly #list: Statement<Scope & PageRow, RuleRow>
  readonly #count: Statement<[string], number>
  readonly #orgOfKey: Statement<[string], string>

  constructor(db: Sqlite, changes: AuditedTransaction) {
    this.#changes = changes
    this.#insert = db.prepare(`
      INSERT INTO rules (id, org_id, member_id, key_id, type, value, created_at)
      VALUES (@id, @org, @member, @key, @type, @value, @now)`)
    this.#setStatus = db.prepare('UPDATE rules SET active = ? WHERE id = ?')
    this.#delete = db.prepare('DELETE FROM rules WHERE id = ?')
    this.#move = db.prepare('UPDATE rules SET key_id = ? WHERE key_id = ?')
    this.#byId = db.prepare(`${RULES} WHERE rules.id = ?`)
    this.#list = db.prepare(`
      ${RULES}
      WHERE (@org IS NULL OR rules.org_id = @org) AND (@member IS NULL OR member_id = @member)
        AND (@key IS NULL OR key_id = @key) AND rules.id > coalesce(@after, '')
      ORDER BY rules.id LIMIT @limit`)
    this.#count = db.prepare<[string], number>('SELECT count(*) FROM rules WHERE org_id = ?').pluck()
    this.#orgOfKey = db
      .prepare<[string], string>(
        'SELECT org_id FROM keys JOIN projects ON projects.id = project_id WHERE keys.id = ? AND parent_id IS NULL',
      )
      .pluck()
  }

  async add(
    { type, value, ...scope }: RuleScope & { type: RuleType; value: RuleValue },
    actor: Actor,
  ): Promise<RuleRecord> {
    const checked = ruleValue(type, value)
    return this.#changes.run(() => {
      const { org: owner, member, key } = this.#scope(scope)
      const org = ruleOwner(owner)
      checkRules(this.#count.get(org)!)
      const id = shortId()
      this.#insert.run({ id, org, member, key, type, value: JSON.stringify(checked), now: this.#changes.now() })
      return this.#noted('iam.add', actor, undefined, this.#row(id))
    })
  }

  async list(scope: RuleScope, page?: Page): Promise<RuleRecord[]> {
    return this.#list.all({ ...this.#scope(scope), ...pageOf(page) }).map(recordOf)
  }

  setStatus(
    id: string,
    status: RuleRecord['status'],
    organization: string | undefined,
    actor: Actor,
  ): Promise<RuleRecord> {
    return this.#changes.run(() => {
      const before = this.#row(id, organization)
      this.#setStatus.run(status === 'active' ? 1 : 0, id)
      return this.#noted('iam.update', actor, before, this.#row(id))
    })
  }

  remove(id: string, organization: string | undefined, actor: Actor): Promise<RuleRecord> {
    return this.#changes.run(() => {
      const before = this.#row(id, organization)
      this.#delete.run(id)
      return this.#noted('iam.remove', actor, before, undefined)
    })
  }

  /** Within a transaction: moves the rules of a key to its successor. */
  move(from: string, to: string): void {
    this.#move.run(to, from)
  }

  /**
   * The organization of a key, when only a key is given. Throws a 404, or a 400 for a member without an organization.
   */
  #scope({ organization, member, key }: RuleScope): Scope {
    const { directory } = this.#changes
    const org = organization === undefined ? null : directory.organization(organization).id
    checkScope({ organization, member, key })
    if (org !== null && member !== undefined) {
      return { org, member: directory.member(org, member).id, key: null }
    }
    if (key === undefined) return { org, member: null, key: null }
    const owner = this.#orgOfKey.get(key)
    if (owner !== undefined && (org === null || org === owner)) return { org: owner, member: null, key }
    throw noSuch('key', key, organization)
  }

  #row(id: string, organization?: string): RuleRow {
    const org = organization === undefined ? undefined : this.#changes.directory.organization(organization).id
    const row = this.#byId.get(id)
    if (row && (org === undefined || row.org_id === org)) return row
    throw noSuch('rule', id, organization)
  }

  /** Within a transaction. Returns the new record, else the old one. */
  #noted(action: string, actor: Actor, before: RuleRow | undefined, after: RuleRow | undefined): RuleRecord {
    const row = (after ?? before)!
    const [was, became] = [before && recordOf(before), after && recordOf(after)]
    this.#changes.note({ actor, action, organization: row.org_id, subject: row.id, was, became })
    return recordOf(row)
  }
}

const recordOf = (row: RuleRow): RuleRecord => ({
  id: row.id,
  organization: row.organization,
  key: row.key_id,
  member: row.email,
  type: row.type as RuleType,
  value: JSON.parse(row.value) as RuleValue,
  status: row.active === 1 ? 'active' : 'inactive',
  createdAt: new Date(row.created_at).toISOString(),
})
