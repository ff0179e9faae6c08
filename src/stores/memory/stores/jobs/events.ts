/** Deliveries of callbacks: one row for each attempt. */
import type { Delivered, Delivery, EndedJob, JobStore, Lease } from '../../../../core/ports.ts'
import type { DeliveryRow } from '../rows.ts'
import { FREE, isFree, type JobTable } from './table.ts'

type Deliveries = Pick<JobStore, 'claimDeliveries' | 'deliver' | 'postpone' | 'deliveries' | 'redeliver'>

/** True while the attempt has not been made. */
export const isPending = ({ state }: Delivery): boolean => state === 'pending'

/** The first attempt, or a later one. */
export function announce(
  { tables }: JobTable,
  jobId: string,
  { id: eventId, type }: EndedJob['event'],
  nextAt: number,
  attempt = 1,
): void {
  const none = { triedAt: null, status: null, response: null, error: null, fence: 0 }
  const row = { eventId, jobId, type, attempt, state: 'pending' as const, nextAt, ...none, ...FREE }
  tables.events.set(keyOf(row), row)
}

/** The part of `JobStore` that claims and records deliveries. */
export function deliveries(table: JobTable): Deliveries {
  const { events } = table.tables
  const change = (row: DeliveryRow, changes: Partial<DeliveryRow>): Delivery => {
    const changed = { ...row, ...changes }
    events.set(keyOf(row), changed)
    return changed
  }
  const fenced = (delivery: Delivery): DeliveryRow | undefined => {
    const row = events.get(keyOf(delivery))
    return row?.fence === delivery.fence && isPending(row) ? row : undefined
  }
  const orgOf = ({ jobId }: Delivery) => table.get(jobId)!.orgId

  return {
    claimDeliveries: (lease, share) =>
      table.write(() => {
        const taken = new Map<string, number>()
        const take = (one: Delivery) => {
          const many = (taken.get(orgOf(one)) ?? 0) + 1
          if (many <= share) taken.set(orgOf(one), many)
          return many <= share
        }
        const pending = events.filter(isPending)
        pending.filter(one => one.leaseOwner === lease.owner && !isFree(one, lease.now)).forEach(take)
        const due = pending.filter(one => one.nextAt <= lease.now && isFree(one, lease.now))
        const claimed = due.filter(take).slice(0, lease.limit)
        return claimed.map(one => change(one, claimBy(one, lease)))
      }),
    deliver: (delivery, delivered) =>
      table.write(() => {
        const row = fenced(delivery)
        if (!row) return false
        const { eventId: id, type, jobId, attempt } = row
        change(row, { ...outcomeOf(delivered), ...FREE })
        if (delivered.state === 'retrying') announce(table, jobId, { id, type }, delivered.nextAt, attempt + 1)
        else table.change(jobId, { callback: null })
        return true
      }),
    postpone: (delivery, nextAt) =>
      table.write(() => {
        const row = fenced(delivery)
        return row !== undefined && change(row, { nextAt, ...FREE }) !== undefined
      }),
    deliveries: async jobId => events.filter(one => one.jobId === jobId),
    redeliver: (eventId, now) =>
      table.write(() => {
        const last = events.filter(one => one.eventId === eventId).at(-1)
        if (!last || !table.get(last.jobId)?.callback) return false
        if (isPending(last)) change(last, { nextAt: now })
        else announce(table, last.jobId, { id: eventId, type: last.type }, now, last.attempt + 1)
        return true
      }),
  }
}

const keyOf = ({ eventId, attempt }: Delivery): string => `${eventId} ${attempt}`

const claimBy = ({ fence }: Delivery, { owner, until }: Lease) => ({
  fence: fence + 1,
  leaseOwner: owner,
  leaseUntil: until,
})

const outcomeOf = ({ state, triedAt, status, response, error }: Delivered) => ({
  state,
  triedAt,
  status,
  response,
  error,
})
