/** Operators' changes of organizations. */
import type { PlanName } from '../../core/plan.ts'
import type { OrganizationRecord, OrganizationStore } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { nameTaken } from '../rules/accounts.ts'
import type { AuditedTransaction } from './audit.ts'
import { changeRates, rateLimitsOf, ratesOf } from './rate-limits.ts'
import { type Flag, first, isAfter, isoOf, pageOf, type Sql } from './sql.ts'

interface OrganizationRow {
  id: string
  name: string
  account: OrganizationRecord['account']
  retains: Flag
  plan: PlanName | null
  created_at: bigint
  rates: string | null
}

const ROWS = `
  SELECT organizations.id, name, account, retains, plan, created_at, ${ratesOf('organizations.id')}
  FROM organizations LEFT JOIN subscriptions ON subscriptions.org_id = organizations.id`
const PAGE = `${ROWS} WHERE ${isAfter('organizations', 1)} ORDER BY organizations.rowid LIMIT $2`
const INSERT = 'INSERT INTO organizations (id, name, account, retains, created_at) VALUES ($1, $2, $3, $4, $5)'
const UPDATE = 'UPDATE organizations SET name = $2, account = $3, retains = $4 WHERE id = $1'

/** Makes the `OrganizationStore` over `organizations`; names are unique among names and ids. */
export const sqlOrganizations = (changes: AuditedTransaction): OrganizationStore => ({
  create: (input, actor) =>
    changes.run(async change => {
      const { name, account = 'prepaid', retains = false } = input
      await refuseTaken(change.sql, name)
      const id = shortId()
      await change.sql.query(INSERT, [id, name, account, retains, change.now()])
      await changeRates(change.sql, id, input.rates)
      const became = await recordIn(change.sql, id)
      await change.note({ actor, action: 'orgs.create', organization: id, subject: id, was: null, became })
      return became
    }),

  list(page) {
    const { after, limit } = pageOf(page)
    return changes.read(async () => (await changes.sql.query<OrganizationRow>(PAGE, [after, limit])).map(recordOf))
  },

  update: (organization, input, actor) =>
    changes.run(async change => {
      const { id } = await change.names.organization(organization)
      const was = await recordIn(change.sql, id)
      const { name = was.name, account = was.account, retains = was.retains } = input
      if (name !== was.name) await refuseTaken(change.sql, name)
      await change.sql.query(UPDATE, [id, name, account, retains])
      await changeRates(change.sql, id, input.rates)
      const became = await recordIn(change.sql, id)
      await change.note({ actor, action: 'orgs.update', organization: id, subject: id, was, became })
      return became
    }),
})

async function refuseTaken(sql: Sql, name: string): Promise<void> {
  const taken = await first(sql, 'SELECT id FROM organizations WHERE CAST($1 AS text) IN (name, id) LIMIT 1', [name])
  if (taken) throw nameTaken.organization(name)
}

async function recordIn(sql: Sql, id: string): Promise<OrganizationRecord> {
  const row = await first<OrganizationRow>(sql, `${ROWS} WHERE organizations.id = $1`, [id])
  return recordOf(row!)
}

const recordOf = ({ id, name, account, retains, plan, created_at, rates }: OrganizationRow): OrganizationRecord => ({
  id,
  name,
  account,
  retains: Boolean(retains),
  plan,
  createdAt: isoOf(created_at),
  ...rateLimitsOf(rates),
})
