/** Jobs as clients and operators read them. */
import type { JobCounts, JobStore } from '../../../../core/ports.ts'
import { isRunning } from '../../../rules/jobs.ts'
import type { JobRow } from '../rows.ts'
import { isPending } from './events.ts'
import { isOpen, type JobTable } from './table.ts'

type Reads = Pick<JobStore, 'get' | 'byLogId' | 'isReadable' | 'list' | 'status' | 'counts' | 'keptBytes'>

/** The part of `JobStore` that changes nothing. */
export function reads(table: JobTable, admits: (keyId: string) => boolean): Reads {
  const { events } = table.tables
  return {
    get: async id => table.get(id),
    byLogId: async logId => table.filter(row => row.logId === logId)[0],
    isReadable: async ({ keyId }) => admits(keyId),
    async list({ orgId = undefined, projectId = undefined }, kind, { after, limit, ascending = false }) {
      const all = table
        .filter(row => row.kind === kind && row.deletedAt === null && row.state !== 'creating')
        .filter(row => (orgId ?? row.orgId) === row.orgId && (projectId ?? row.projectId) === row.projectId)
        .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
      const ordered = ascending ? all : all.reverse()
      const from = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1 || ordered.length
      return ordered.slice(from, limit === undefined ? undefined : from + limit)
    },
    async status(now) {
      const open = table.filter(isOpen)
      const leased = open.filter(({ leaseUntil }) => leaseUntil > now).map(({ leaseOwner }) => leaseOwner ?? '')
      return {
        running: counted(open.map(({ state }) => state)),
        due: open.filter(({ state, nextAt }) => isRunning(state) && nextAt <= now).length,
        leased: counted(leased),
        oldest: open.length > 0 ? Math.min(...open.map(({ createdAt }) => createdAt)) : null,
        callbacks: events.filter(isPending).length,
      }
    },
    async counts() {
      const running = new Map<string, JobCounts['running'][number]>()
      for (const { state, provider } of table.filter(isOpen)) {
        const key = `${state} ${provider}`
        running.set(key, { state, provider, count: (running.get(key)?.count ?? 0) + 1 })
      }
      return { running: [...running.values()], bytes: bytesOf(table.filter(() => true)) }
    },
    keptBytes: async orgId => ({
      all: bytesOf(table.filter(() => true)),
      own: bytesOf(table.filter(row => row.orgId === orgId)),
    }),
  }
}

function counted(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

/** Bytes of the results that are kept, of these jobs. */
const bytesOf = (jobs: readonly JobRow[]): number =>
  jobs.reduce((sum, { result }) => sum + (result?.kind === 'blob' ? result.bytes : 0), 0)
