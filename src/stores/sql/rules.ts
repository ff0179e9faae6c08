/** Operators' changes of the rules of organizations, members and keys. */
import type { RuleType, RuleValue } from '../../core/policy.ts'
import type { Actor, RuleRecord, RuleScope, RuleStore } from '../../core/ports.ts'
import { shortId } from '../../lib/id.ts'
import { ruleValue } from '../../policy/rule-value.ts'
import { noSuch } from '../rules/names.ts'
import { checkRules, checkScope, ruleOwner } from '../rules/policies.ts'
import type { AuditedTransaction, Change } from './audit.ts'
import { type Flag, first, isoOf, pageOf } from './sql.ts'

interface RuleRow {
  id: string
  org_id: string
  organization: string
  key_id: string | null
  email: string | null
  type: string
  value: string
  active: Flag
  created_at: bigint
}
interface Scope {
  readonly org: string | null
  readonly member: string | null
  readonly key: string | null
}

const ROWS = `
  SELECT rules.id, rules.org_id, organizations.name AS organization, key_id, members.email, type, value, active,
    rules.created_at
  FROM rules
  JOIN organizations ON organizations.id = rules.org_id
  LEFT JOIN members ON members.id = rules.member_id`
const PAGE = `
  ${ROWS}
  WHERE (CAST($1 AS text) IS NULL OR rules.org_id = $1) AND (CAST($2 AS text) IS NULL OR member_id = $2)
    AND (CAST($3 AS text) IS NULL OR key_id = $3) AND rules.id > coalesce(CAST($4 AS text), '')
  ORDER BY rules.id LIMIT $5`
const INSERT = `
  INSERT INTO rules (id, org_id, member_id, key_id, type, value, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`
const OWNER_OF_KEY = `
  SELECT org_id FROM keys JOIN projects ON projects.id = project_id WHERE keys.id = $1 AND parent_id IS NULL`

/** Makes the `RuleStore` over `rules`. */
export const sqlRules = (changes: AuditedTransaction): RuleStore => ({
  async add({ type, value, ...scope }, actor) {
    const checked = ruleValue(type, value)
    return changes.run(async change => {
      const { sql, now } = change
      const { org: owner, member, key } = await scopeIn(change, scope)
      const org = ruleOwner(owner)
      const row = await first<{ rules: bigint }>(sql, 'SELECT count(*) AS rules FROM rules WHERE org_id = $1', [org])
      checkRules(Number(row!.rules))
      const id = shortId()
      await sql.query(INSERT, [id, org, member, key, type, JSON.stringify(checked), now()])
      return noted(change, 'iam.add', actor, undefined, await rowIn(change, id))
    })
  },

  list(scope, page) {
    const { after, limit } = pageOf(page)
    return changes.read(async () => {
      const { org, member, key } = await scopeIn(changes, scope)
      const rows = await changes.sql.query<RuleRow>(PAGE, [org, member, key, after, limit])
      return rows.map(recordOf)
    })
  },

  setStatus: (id, status, organization, actor) =>
    changes.run(async change => {
      const before = await rowIn(change, id, organization)
      await change.sql.query('UPDATE rules SET active = $1 WHERE id = $2', [status === 'active', id])
      return noted(change, 'iam.update', actor, before, await rowIn(change, id))
    }),

  remove: (id, organization, actor) =>
    changes.run(async change => {
      const before = await rowIn(change, id, organization)
      await change.sql.query('DELETE FROM rules WHERE id = $1', [id])
      return noted(change, 'iam.remove', actor, before, undefined)
    }),
})

type Names = Pick<Change, 'sql' | 'names'>

/** The organization of a key, when only a key is given. Rejects with a 404, or a 400 for a member without an organization. */
async function scopeIn({ sql, names }: Names, { organization, member, key }: RuleScope): Promise<Scope> {
  const org = await names.organizationId(organization)
  checkScope({ organization, member, key })
  if (org !== null && member !== undefined) return { org, member: (await names.member(org, member)).id, key: null }
  if (key === undefined) return { org, member: null, key: null }
  const owner = await first<{ org_id: string }>(sql, OWNER_OF_KEY, [key])
  if (owner && (org === null || org === owner.org_id)) return { org: owner.org_id, member: null, key }
  throw noSuch('key', key, organization)
}

async function rowIn({ sql, names }: Names, id: string, organization?: string): Promise<RuleRow> {
  const org = await names.organizationId(organization)
  const row = await first<RuleRow>(sql, `${ROWS} WHERE rules.id = $1`, [id])
  if (row && (org === null || row.org_id === org)) return row
  throw noSuch('rule', id, organization)
}

/** Returns the new record, else the old one. */
async function noted(
  { note }: Change,
  action: string,
  actor: Actor,
  before: RuleRow | undefined,
  after: RuleRow | undefined,
): Promise<RuleRecord> {
  const row = (after ?? before)!
  const [was, became] = [before && recordOf(before), after && recordOf(after)]
  await note({ actor, action, organization: row.org_id, subject: row.id, was, became })
  return recordOf(row)
}

const recordOf = (row: RuleRow): RuleRecord => ({
  id: row.id,
  organization: row.organization,
  key: row.key_id,
  member: row.email,
  type: row.type as RuleType,
  value: JSON.parse(row.value) as RuleValue,
  status: row.active ? 'active' : 'inactive',
  createdAt: isoOf(row.created_at),
})
