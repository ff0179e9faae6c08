/** Operators' changes of organizations. */
import type { Statement } from 'better-sqlite3'
import type { PlanName } from '../../core/plan.ts'
import type { Actor, OrganizationChanges, OrganizationRecord, OrganizationStore, Page } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { nameTaken } from '../rules/accounts.ts'
import type { AuditedTransaction } from './audited-transaction.ts'
import type { Sqlite } from './open.ts'
import { type PageRow, pageOf } from './page.ts'

interface OrganizationRow {
  id: string
  name: string
  account: OrganizationRecord['account']
  retains: number
  plan: PlanName | null
  created_at: number
}

const ROWS = `
  SELECT organizations.id, name, account, retains, plan, created_at
  FROM organizations LEFT JOIN subscriptions ON subscriptions.org_id = organizations.id`

/** `OrganizationStore` over `organizations`; names are unique among names and ids. */
export class SqliteOrganizations implements OrganizationStore {
  readonly #changes: AuditedTransaction
  readonly #add: Statement
  readonly #update: Statement
  readonly #named: Statement<[string], number>
  readonly #byId: Statement<[string], OrganizationRow>
  readonly #list: Statement<PageRow, OrganizationRow>

  constructor(db: Sqlite, changes: AuditedTransaction) {
    this.#changes = changes
    this.#add = db.prepare(`
      INSERT INTO organizations (id, name, account, retains, created_at)
      VALUES (@id, @name, @account, @retains, @now)`)
    this.#update = db.prepare(
      'UPDATE organizations SET name = @name, account = @account, retains = @retains WHERE id = @id',
    )
    this.#named = db.prepare<[string], number>('SELECT count(*) FROM organizations WHERE ? IN (name, id)').pluck()
    this.#byId = db.prepare(`${ROWS} WHERE organizations.id = ?`)
    this.#list = db.prepare(`
      ${ROWS}
      WHERE organizations.rowid >
        CASE WHEN @after IS NULL THEN 0 ELSE (SELECT rowid FROM organizations WHERE id = @after) END
      ORDER BY organizations.rowid LIMIT @limit`)
  }

  create(input: OrganizationChanges & { readonly name: string }, actor: Actor): Promise<OrganizationRecord> {
    return this.#changes.run(() => {
      const { name, account = 'prepaid', retains = false } = input
      this.#refuseTaken(name)
      const id = shortId()
      this.#add.run({ id, name, account, retains: retains ? 1 : 0, now: this.#changes.now() })
      const became = this.#record(id)
      this.#changes.note({ actor, action: 'orgs.create', organization: id, subject: id, was: null, became })
      return became
    })
  }

  async list(page?: Page): Promise<OrganizationRecord[]> {
    return this.#list.all(pageOf(page)).map(recordOf)
  }

  update(organization: string, changes: OrganizationChanges, actor: Actor): Promise<OrganizationRecord> {
    return this.#changes.run(() => {
      const { id } = this.#changes.directory.organization(organization)
      const was = this.#record(id)
      const { name = was.name, account = was.account, retains = was.retains } = changes
      if (name !== was.name) this.#refuseTaken(name)
      this.#update.run({ id, name, account, retains: retains ? 1 : 0 })
      const became = this.#record(id)
      this.#changes.note({ actor, action: 'orgs.update', organization: id, subject: id, was, became })
      return became
    })
  }

  #refuseTaken(name: string): void {
    if (this.#named.get(name) !== 0) throw nameTaken.organization(name)
  }

  #record(id: string): OrganizationRecord {
    return recordOf(this.#byId.get(id)!)
  }
}

const recordOf = ({ id, name, account, retains, plan, created_at }: OrganizationRow): OrganizationRecord => ({
  id,
  name,
  account,
  retains: retains !== 0,
  plan,
  createdAt: new Date(created_at).toISOString(),
})
