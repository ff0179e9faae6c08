/** Results of jobs, and how they and the rows go. */
import type { JobStore } from '../../../../core/ports.ts'
import type { JobRow } from '../rows.ts'
import { isPending } from './events.ts'
import type { JobTable } from './table.ts'

type Results = Pick<JobStore, 'expire' | 'expireDue' | 'remove' | 'prune' | 'blobs'>

/** The part of `JobStore` that expires results and removes rows. */
export function results(table: JobTable): Results {
  const { events } = table.tables
  return {
    expire: (id, now) =>
      table.write(() => {
        const row = table.get(id)
        if (!row?.result) return undefined
        table.change(id, { result: null, expiresAt: Math.min(row.expiresAt ?? now, now) })
        return row
      }),
    expireDue: (now, limit) =>
      table.write(() => {
        const isDue = ({ result, expiresAt }: JobRow) => result !== null && expiresAt !== null && expiresAt <= now
        const due = table.filter(isDue).slice(0, limit)
        for (const { id } of due) table.change(id, { result: null })
        return due
      }),
    remove: (id, now) =>
      table.write(() => {
        const row = table.get(id)
        if (!row || row.completedAt === null || row.deletedAt !== null) return undefined
        table.change(id, { result: null, callback: null, deletedAt: now })
        return row
      }),
    prune: (before, limit) =>
      table.write(() => {
        const isOld = ({ id, completedAt, result }: JobRow) =>
          completedAt !== null &&
          completedAt < before &&
          result === null &&
          events.filter(one => one.jobId === id && isPending(one)).length === 0
        const old = table.filter(isOld).slice(0, limit)
        for (const { id } of old) table.forget(id)
        return old.length
      }),
    async blobs(names) {
      const kept = table.filter(({ result }) => result?.kind === 'blob' && names.includes(result.blob))
      return new Set(kept.map(({ result }) => (result?.kind === 'blob' ? result.blob : '')))
    },
  }
}
