/** Rate limits as operators set them. What they count is in the counters. */
import type { OwnLimits, RateChange, RateLimits } from '../../limits/kinds.ts'
import { first, type Sql } from './sql.ts'

const LIMITS = 'SELECT limits FROM rate_limits WHERE subject = $1'
const SET = `
  INSERT INTO rate_limits (subject, limits) VALUES ($1, $2) ON CONFLICT (subject) DO UPDATE SET limits = excluded.limits`
const DROP = 'DELETE FROM rate_limits WHERE subject = $1'
const OF_CALLER = `
  SELECT subject, limits,
    (SELECT name FROM projects WHERE projects.id = subject) AS project,
    (SELECT email FROM members WHERE members.id = subject) AS member,
    (SELECT name FROM organizations WHERE organizations.id = subject) AS organization,
    (SELECT name FROM keys WHERE keys.id = subject) AS "key"
  FROM rate_limits WHERE subject IN ($1, $2, $3, $4)`

/** Expression for the limits of a row, as `rateLimitsOf` reads them. */
export const ratesOf = (id: string): string => `(SELECT limits FROM rate_limits WHERE subject = ${id}) AS rates`

/** Member of a record for limits that `ratesOf` has read; none without limits. */
export const rateLimitsOf = (rates: string | null): { rateLimits?: RateLimits } =>
  rates === null ? {} : { rateLimits: JSON.parse(rates) }

/** Within a transaction: changes the limits that are named. */
export async function changeRates(sql: Sql, subject: string, change: RateChange | undefined): Promise<void> {
  if (!change) return
  const row = await first<{ limits: string }>(sql, LIMITS, [subject])
  const limits: Record<string, unknown> = row ? JSON.parse(row.limits) : {}
  for (const [kind, value] of Object.entries(change)) {
    if (value === null) delete limits[kind]
    else if (value !== undefined) limits[kind] = value
  }
  const isEmpty = Object.keys(limits).every(kind => kind === 'on_limit')
  await (isEmpty ? sql.query(DROP, [subject]) : sql.query(SET, [subject, JSON.stringify(limits)]))
}

/** Within a transaction: moves all limits to another subject. */
export async function moveRates(sql: Sql, from: string, to: string): Promise<void> {
  await sql.query('UPDATE rate_limits SET subject = $2 WHERE subject = $1', [from, to])
}

interface CallerRow {
  subject: string
  limits: string
  project: string | null
  member: string | null
  organization: string | null
  key: string | null
}

/** Reads the limits of a key, its member, its project and its organization, the narrowest first. */
export async function readRates(
  sql: Sql,
  [key, member, project, organization]: readonly [key: string, member: string | null, project: string, org: string],
): Promise<readonly OwnLimits[] | undefined> {
  const rows = await sql.query<CallerRow>(OF_CALLER, [key, member, project, organization])
  if (rows.length === 0) return undefined
  const order = ['key', 'member', 'project', 'org'] as const
  return rows
    .map(row => {
      const names = { key: row.key, member: row.member, project: row.project, org: row.organization }
      const of = order.find(kind => names[kind] !== null) ?? 'key'
      return { of, id: row.subject, name: names[of] ?? row.subject, limits: JSON.parse(row.limits) as RateLimits }
    })
    .sort((one, other) => order.indexOf(one.of) - order.indexOf(other.of))
}
