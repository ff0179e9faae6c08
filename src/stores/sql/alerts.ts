/** Keeps alerts, and the events of their callbacks, which are delivered as those of jobs are. */
import type { AlertStore, LimitStanding, MoneyState, StoredAlert } from '../../limits/alerts.ts'
import { explained, first, numberOf, type Sql } from './sql.ts'

interface AlertRow {
  id: string
  unique_key: string
  rule: string
  org_id: string
  created_at: bigint
  ends_at: bigint | null
  body: string
}

/** An alert whose time is over leaves its key to the next one. */
const FREE = "UPDATE alerts SET unique_key = unique_key || ' ' || id WHERE unique_key = $1 AND ends_at <= $2"
const RAISE = `
  INSERT INTO alerts (id, unique_key, rule, org_id, created_at, ends_at, body) VALUES ($1, $2, $3, $4, $5, $6, $7)
  ON CONFLICT (unique_key) DO NOTHING RETURNING id`
const ANNOUNCE = `
  INSERT INTO job_events (event_id, job_id, type, attempt, state, next_at, org_id)
  VALUES ($1, $2, $3, 1, 'pending', $4, $5)`
const OLD = `
  SELECT id FROM alerts WHERE ends_at < $1
    AND NOT EXISTS (SELECT 1 FROM job_events WHERE job_id = alerts.id AND state = 'pending') LIMIT $2`

const CALLER = `
  SELECT (SELECT name FROM organizations WHERE id = $1) AS org_name, (SELECT name FROM keys WHERE id = $2) AS key_name,
    (SELECT created_by FROM keys WHERE id = $2) AS member`

/** Makes the store over one database. */
export function sqlAlerts(sql: Sql): AlertStore {
  const { elementsOf, lockFree } = sql.dialect
  const limitsBy = `
    SELECT id, kind, period, zone, amount, spent FROM budgets WHERE id IN (${elementsOf('CAST($1 AS text)')})`
  return {
    raise: ({ id, key, rule, orgId, at, endsAt, body }, event) =>
      explained(() =>
        sql.transaction(async within => {
          await within.query(FREE, [key, at])
          const rows = await within.query(RAISE, [id, key, rule, orgId, at, endsAt ?? null, body])
          if (rows.length === 0) return false
          if (event) await within.query(ANNOUNCE, [event.id, id, event.type, at, orgId])
          return true
        }),
      ),

    async find(id) {
      const row = await explained(() => first<AlertRow>(sql, 'SELECT * FROM alerts WHERE id = $1', [id]))
      return row && alertOf(row)
    },

    async standing(orgId, limits): Promise<MoneyState> {
      const rows =
        limits.length === 0 ? [] : await explained(() => sql.query<LimitRow>(limitsBy, [JSON.stringify(limits)]))
      const text = 'SELECT balance, used FROM balances WHERE org_id = $1'
      const credits = await explained(() => first<{ balance: bigint; used: bigint }>(sql, text, [orgId]))
      return {
        limits: rows.map(({ id, kind, period, zone, amount, spent }) => {
          return { id, of: kind, limit: amount, period, zone, spent }
        }),
        credits: credits && { balance: credits.balance, credited: credits.balance + credits.used },
      }
    },

    async callerOf(orgId, keyId) {
      const row = await explained(() => first<CallerRow>(sql, CALLER, [orgId, keyId]))
      const member = row?.member == null ? undefined : { id: row.member }
      return { orgName: row?.org_name ?? orgId, keyName: row?.key_name ?? keyId, member }
    },

    async prune(before, limit) {
      if ((await explained(() => sql.query(OLD, [before, 1]))).length === 0) return 0
      return explained(() =>
        sql.transaction(async within => {
          const old = await within.query<{ id: string }>(`${OLD} ${lockFree}`, [before, limit])
          for (const { id } of old) {
            await within.query('DELETE FROM job_events WHERE job_id = $1', [id])
            await within.query('DELETE FROM alerts WHERE id = $1', [id])
          }
          return old.length
        }, 'committed'),
      )
    },
  }
}

interface CallerRow {
  org_name: string | null
  key_name: string | null
  member: string | null
}

interface LimitRow {
  id: string
  kind: string
  period: LimitStanding['period']
  zone: string
  amount: bigint
  spent: bigint
}

const alertOf = (row: AlertRow): StoredAlert => ({
  id: row.id,
  key: row.unique_key,
  rule: row.rule,
  orgId: row.org_id,
  at: Number(row.created_at),
  endsAt: numberOf(row.ends_at) ?? undefined,
  body: row.body,
})
