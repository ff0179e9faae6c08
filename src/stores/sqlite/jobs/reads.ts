/** Reads jobs one by one, as lists and as counts. */
import type { JobCounts, JobStore } from '../../../core/ports.ts'
import type { SqlKeys } from '../../sql/keys.ts'
import { ALL } from '../../sql/page.ts'
import { RUNNING } from './claims.ts'
import type { JobRow } from './rows.ts'
import type { JobTable } from './table.ts'

type Reads = Pick<JobStore, 'get' | 'byLogId' | 'isReadable' | 'list' | 'status' | 'counts' | 'keptBytes'>

const LISTED = "SELECT * FROM jobs WHERE kind = @kind AND deleted_at IS NULL AND state <> 'creating'"
const OF_PROJECT = 'project_id = @project'
/** Filter of the operators' lists. */
const OF_ANY = '(@org IS NULL OR org_id = @org) AND (@project IS NULL OR project_id = @project)'
/** Than the job @after. */
const OLDER = '(created_at, id) < (SELECT created_at, id FROM jobs WHERE id = @after)'
const NEWER = '(created_at, id) > (SELECT created_at, id FROM jobs WHERE id = @after)'
const NEWEST_FIRST = 'ORDER BY created_at DESC, id DESC LIMIT @limit'
const OLDEST_FIRST = 'ORDER BY created_at, id LIMIT @limit'
const KEPT = 'FROM jobs WHERE result_blob IS NOT NULL'
const OPEN = "FROM jobs WHERE state IN ('creating', 'queued', 'in_progress')"

/** The part of `JobStore` that changes nothing. */
export function reads(table: JobTable, keys: Pick<SqlKeys, 'admits'>): Reads {
  const { db } = table
  const byLogId = db.prepare<[string], JobRow>('SELECT * FROM jobs WHERE log_id = ?').safeIntegers()
  const count = (sql: string, ...args: unknown[]): Record<string, number> =>
    Object.fromEntries(
      db
        .prepare<unknown[], [string, number]>(sql)
        .raw()
        .all(...args),
    )
  const listed = (sql: string) => db.prepare<object, JobRow>(sql).safeIntegers()
  // Each has plain conditions, so that an index answers them.
  const ofProject = {
    newest: listed(`${LISTED} AND ${OF_PROJECT} ${NEWEST_FIRST}`),
    older: listed(`${LISTED} AND ${OF_PROJECT} AND ${OLDER} ${NEWEST_FIRST}`),
    oldest: listed(`${LISTED} AND ${OF_PROJECT} ${OLDEST_FIRST}`),
    newer: listed(`${LISTED} AND ${OF_PROJECT} AND ${NEWER} ${OLDEST_FIRST}`),
  }
  const ofAny = {
    newest: listed(`${LISTED} AND ${OF_ANY} ${NEWEST_FIRST}`),
    older: listed(`${LISTED} AND ${OF_ANY} AND ${OLDER} ${NEWEST_FIRST}`),
    oldest: listed(`${LISTED} AND ${OF_ANY} ${OLDEST_FIRST}`),
    newer: listed(`${LISTED} AND ${OF_ANY} AND ${NEWER} ${OLDEST_FIRST}`),
  }
  const one = (sql: string, ...args: unknown[]) =>
    db
      .prepare<unknown[], number>(sql)
      .pluck()
      .get(...args)

  return {
    get: async id => table.read(id),

    async byLogId(logId) {
      const row = byLogId.get(logId)
      return row && table.job(row)
    },

    isReadable: ({ keyId }) => keys.admits(keyId),

    async list({ orgId = undefined, projectId = undefined }, kind, page) {
      const { after = null, limit = ALL, ascending = false } = page
      const { newest, older, oldest, newer } = orgId === undefined && projectId !== undefined ? ofProject : ofAny
      const [first, next] = ascending ? [oldest, newer] : [newest, older]
      const rows = (after === null ? first : next).all({
        kind,
        org: orgId ?? null,
        project: projectId ?? null,
        after,
        limit,
      })
      return rows.map(table.job)
    },

    async status(now) {
      return {
        running: count(`SELECT state, count(*) ${OPEN} GROUP BY state`),
        due: one(`SELECT count(*) FROM jobs WHERE ${RUNNING} AND next_at <= ?`, now) ?? 0,
        leased: count(`SELECT lease_owner, count(*) ${OPEN} AND lease_until > ? GROUP BY lease_owner`, now),
        oldest: one(`SELECT min(created_at) ${OPEN}`) ?? null,
        callbacks: one("SELECT count(*) FROM job_events WHERE state = 'pending'") ?? 0,
      }
    },

    async counts() {
      return {
        running: db
          .prepare<[], JobCounts['running'][number]>(`SELECT state, provider, count(*) AS count ${OPEN} GROUP BY 1, 2`)
          .all(),
        bytes: one(`SELECT coalesce(sum(result_bytes), 0) ${KEPT}`) ?? 0,
      }
    },

    async keptBytes(orgId) {
      const sum = 'SELECT coalesce(sum(result_bytes), 0)'
      return { all: one(`${sum} ${KEPT}`) ?? 0, own: one(`${sum} ${KEPT} AND org_id = ?`, orgId) ?? 0 }
    },
  }
}
