/** Reads jobs one by one, as lists and as counts. */
import type { JobState, JobStore } from '../../../core/ports.ts'
import type { SqlKeys } from '../keys.ts'
import { ALL, numberOf, type SqlValue } from '../sql.ts'
import { OPEN, RUNNING } from './claims.ts'
import type { JobRow } from './rows.ts'
import type { JobTable } from './table.ts'

type Reads = Pick<JobStore, 'get' | 'byLogId' | 'isReadable' | 'list' | 'status' | 'counts' | 'keptBytes'>

// Parameters of lists: $1 kind, $2 limit, $3 project, $4 organization, last the job that the page follows.
const LISTED = "SELECT * FROM jobs WHERE kind = $1 AND deleted_at IS NULL AND state <> 'creating'"
const OF_PROJECT = 'project_id = $3'
/** Filter of the operators' lists. */
const OF_ANY = '(CAST($4 AS text) IS NULL OR org_id = $4) AND (CAST($3 AS text) IS NULL OR project_id = $3)'
const OLDEST_FIRST = 'ORDER BY created_at, id LIMIT $2'
const NEWEST_FIRST = 'ORDER BY created_at DESC, id DESC LIMIT $2'
const behind = (sign: '<' | '>', after: string): string =>
  `(created_at, id) ${sign} (SELECT created_at, id FROM jobs WHERE id = ${after})`
const KEPT_BYTES = `
  SELECT CAST(coalesce(sum(result_bytes), 0) AS bigint) AS count FROM jobs WHERE result_blob IS NOT NULL`

/** The part of `JobStore` that changes nothing. */
export function reads(table: JobTable, keys: Pick<SqlKeys, 'admits'>): Reads {
  interface Count {
    readonly name: string
    readonly count: bigint
  }
  const counts = async (text: string, values?: readonly SqlValue[]): Promise<Record<string, number>> =>
    Object.fromEntries((await table.query<Count>(text, values)).map(({ name, count }) => [name, Number(count)]))
  const one = async (text: string, values?: readonly SqlValue[]): Promise<number> =>
    Number((await table.query<Count>(text, values))[0]!.count)

  return {
    get: id => table.find('SELECT * FROM jobs WHERE id = $1', [id]),

    byLogId: logId => table.find('SELECT * FROM jobs WHERE log_id = $1', [logId]),

    isReadable: ({ keyId }) => keys.admits(keyId),

    async list({ orgId = undefined, projectId = undefined }, kind, page) {
      const { after = null, limit = ALL, ascending = false } = page
      // Each text has plain conditions, so that an index answers it.
      const isOfProject = orgId === undefined && projectId !== undefined
      const values: SqlValue[] = [kind, limit, projectId ?? null]
      if (!isOfProject) values.push(orgId ?? null)
      let text = `${LISTED} AND ${isOfProject ? OF_PROJECT : OF_ANY}`
      if (after !== null) text += ` AND ${behind(ascending ? '>' : '<', `$${values.push(after)}`)}`
      const rows = await table.query<JobRow>(`${text} ${ascending ? OLDEST_FIRST : NEWEST_FIRST}`, values)
      return rows.map(table.job)
    },

    async status(now) {
      const leased = `SELECT lease_owner AS name, count(*) AS count FROM jobs
        WHERE ${OPEN} AND lease_until > $1 GROUP BY lease_owner`
      const oldest = `SELECT min(created_at) AS at FROM jobs WHERE ${OPEN}`
      return {
        running: await counts(`SELECT state AS name, count(*) AS count FROM jobs WHERE ${OPEN} GROUP BY state`),
        due: await one(`SELECT count(*) AS count FROM jobs WHERE ${RUNNING} AND next_at <= $1`, [now]),
        leased: await counts(leased, [now + table.ahead]),
        oldest: numberOf((await table.query<{ at: bigint | null }>(oldest))[0]!.at),
        callbacks: await one("SELECT count(*) AS count FROM job_events WHERE state = 'pending'"),
      }
    },

    async counts() {
      const running = await table.query<{ state: JobState; provider: string; count: bigint }>(
        `SELECT state, provider, count(*) AS count FROM jobs WHERE ${OPEN} GROUP BY 1, 2`,
      )
      return {
        running: running.map(({ state, provider, count }) => ({ state, provider, count: Number(count) })),
        bytes: await one(KEPT_BYTES),
      }
    },

    async keptBytes(orgId) {
      return { all: await one(KEPT_BYTES), own: await one(`${KEPT_BYTES} AND org_id = $1`, [orgId]) }
    },
  }
}
