/** Jobs after their end: how long they, and what they made, are kept. */
import type { Job, JobStore } from '../../../core/ports.ts'
import type { JobTable } from './table.ts'

type Results = Pick<JobStore, 'expire' | 'expireDue' | 'remove' | 'prune' | 'blobs'>

/** Columns that are cleared with a result. */
const NO_RESULT = `result_kind = NULL, result_url = NULL, result_blob = NULL, result_type = NULL, result_bytes = NULL,
  result_etag = NULL`

/** The part of `JobStore` that expires results and removes rows. */
export function results(table: JobTable): Results {
  const { db } = table
  const expire = (id: string, now: number): Promise<Job | undefined> =>
    table.write('committed', () => {
      const job = table.read(id)
      if (!job?.result) return undefined
      db.prepare(`UPDATE jobs SET ${NO_RESULT}, expires_at = min(expires_at, ?) WHERE id = ?`).run(now, id)
      return job
    })

  return {
    expire,

    async expireDue(now, limit) {
      const due = db
        .prepare<[number, number], string>(
          'SELECT id FROM jobs WHERE result_kind IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?',
        )
        .pluck()
        .all(now, limit)
      const gone: Job[] = []
      for (const id of due) {
        const job = await expire(id, now)
        if (job) gone.push(job)
      }
      return gone
    },

    remove: (id, now) =>
      table.write('committed', () => {
        const job = table.read(id)
        if (!job || job.completedAt === null || job.deletedAt !== null) return undefined
        db.prepare(
          `UPDATE jobs SET ${NO_RESULT}, callback_url = NULL, callback_secret = NULL, deleted_at = ? WHERE id = ?`,
        ).run(now, id)
        return job
      }),

    prune(before, limit) {
      const old = `SELECT id FROM jobs WHERE completed_at < @before AND result_kind IS NULL
        AND NOT EXISTS (SELECT 1 FROM job_events WHERE job_id = jobs.id AND state = 'pending') LIMIT @limit`
      if (!db.prepare<object>(old).get({ before, limit: 1 })) return Promise.resolve(0)
      return table.write('committed', () => {
        const ids = db.prepare<object, string>(old).pluck().all({ before, limit })
        for (const id of ids) table.forget(id)
        return ids.length
      })
    },

    async blobs(names) {
      const known = db.prepare<[string], string>(
        'SELECT result_blob FROM jobs WHERE result_blob IN (SELECT value FROM json_each(?))',
      )
      return new Set(known.pluck().all(JSON.stringify(names)))
    },
  }
}
