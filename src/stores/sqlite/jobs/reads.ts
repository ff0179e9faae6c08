/** What is read of jobs, one by one, as lists and as counts. */
import type { JobCounts, JobStore } from '../../../core/ports.ts'
import { ALL } from '../page.ts'
import { RUNNING } from './claims.ts'
import type { JobRow } from './rows.ts'
import type { JobTable } from './table.ts'

type Reads = Pick<JobStore, 'get' | 'byLogId' | 'list' | 'status' | 'counts' | 'keptBytes'>

const LISTED = "SELECT * FROM jobs WHERE kind = @kind AND deleted_at IS NULL AND state <> 'creating'"
const OF_PROJECT = 'project_id = @project'
/** What operators list. */
const OF_ANY = '(@org IS NULL OR org_id = @org) AND (@project IS NULL OR project_id = @project)'
const KEPT = 'FROM jobs WHERE result_blob IS NOT NULL'
const OPEN = "FROM jobs WHERE state IN ('creating', 'queued', 'in_progress')"

/** The part of `JobStore` that changes nothing. */
export function reads(table: JobTable): Reads {
  const { db } = table
  const byLogId = db.prepare<[string], JobRow>('SELECT * FROM jobs WHERE log_id = ?').safeIntegers()
  const count = (sql: string, ...args: unknown[]): Record<string, number> =>
    Object.fromEntries(
      db
        .prepare<unknown[], [string, number]>(sql)
        .raw()
        .all(...args),
    )
  /** A page of jobs, behind the job @after if there is one. Conditions are plain, so that an index answers them. */
  const listed = (whose: string, ascending: boolean, isFirst: boolean) => {
    const [beyond, order] = ascending ? ['>', 'ASC'] : ['<', 'DESC']
    const behind = `AND (created_at, id) ${beyond} (SELECT created_at, id FROM jobs WHERE id = @after)`
    return db
      .prepare<object, JobRow>(
        `${LISTED} AND ${whose} ${isFirst ? '' : behind} ORDER BY created_at ${order}, id ${order} LIMIT @limit`,
      )
      .safeIntegers()
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

    async list({ orgId = undefined, projectId = undefined }, kind, page) {
      const { after = null, limit = ALL, ascending = false } = page
      const whose = orgId === undefined && projectId !== undefined ? OF_PROJECT : OF_ANY
      const rows = listed(whose, ascending, after === null).all({
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
