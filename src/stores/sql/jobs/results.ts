/** Jobs after their end: how long they, and what they made, are kept. */
import type { Job, JobStore } from '../../../core/ports.ts'
import type { JobTable } from './table.ts'

type Results = Pick<JobStore, 'expire' | 'expireDue' | 'remove' | 'prune' | 'blobs'>

/** Columns that are cleared with a result. */
const NO_RESULT = `result_kind = NULL, result_url = NULL, result_blob = NULL, result_type = NULL, result_bytes = NULL,
  result_etag = NULL`

const EXPIRE = `
  UPDATE jobs SET ${NO_RESULT}, expires_at = CASE WHEN expires_at > $2 THEN CAST($2 AS bigint) ELSE expires_at END
  WHERE id = $1`
const EXPIRED = `
  SELECT id FROM jobs WHERE result_kind IS NOT NULL AND expires_at <= $1 ORDER BY expires_at LIMIT $2`
const REMOVE = `UPDATE jobs SET ${NO_RESULT}, callback_url = NULL, callback_secret = NULL, deleted_at = $2 WHERE id = $1`
const OLD = `
  SELECT id FROM jobs WHERE completed_at < $1 AND result_kind IS NULL
    AND NOT EXISTS (SELECT 1 FROM job_events WHERE job_id = jobs.id AND state = 'pending') LIMIT $2`

/** The part of `JobStore` that expires results and removes rows. */
export function results(table: JobTable): Results {
  const { elementsOf, lockFree } = table.sql.dialect
  const expire = (id: string, now: number): Promise<Job | undefined> =>
    table.write('committed', async within => {
      const row = await within.row(id)
      if (!row || row.result_kind === null) return undefined
      await within.sql.query(EXPIRE, [id, now])
      return within.job(row)
    })

  return {
    expire,

    async expireDue(now, limit) {
      const gone: Job[] = []
      for (const { id } of await table.query<{ id: string }>(EXPIRED, [now, limit])) {
        const job = await expire(id, now)
        if (job) gone.push(job)
      }
      return gone
    },

    remove: (id, now) =>
      table.write('committed', async within => {
        const job = await within.read(id)
        if (!job || job.completedAt === null || job.deletedAt !== null) return undefined
        await within.sql.query(REMOVE, [id, now])
        return job
      }),

    async prune(before, limit) {
      if ((await table.query(OLD, [before, 1])).length === 0) return 0
      return table.write('committed', async within => {
        const old = await within.sql.query<{ id: string }>(`${OLD} ${lockFree}`, [before, limit])
        for (const { id } of old) await within.forget(id)
        return old.length
      })
    },

    async blobs(names) {
      const text = `SELECT result_blob FROM jobs WHERE result_blob IN (${elementsOf('CAST($1 AS text)')})`
      const known = await table.query<{ result_blob: string }>(text, [JSON.stringify(names)])
      return new Set(known.map(({ result_blob }) => result_blob))
    },
  }
}
