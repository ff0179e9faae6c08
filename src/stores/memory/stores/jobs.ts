/** Jobs in memory: one process, so that leases and fences only keep its own claims apart. */
import { errors } from '../../../core/error.ts'
import type { Delivered, Delivery, EndedJob, Job, JobCounts, JobError, JobStore, Lease } from '../../../core/ports.ts'
import { IDEMPOTENT_MS, isRunning, type LedgerTransaction, moved, startProgress } from '../../rules/jobs.ts'
import type { JobRow } from './rows.ts'
import type { Tables } from './tables.ts'

export function jobStore(tables: Tables, ledger: LedgerTransaction): JobStore {
  const { jobs, events } = tables
  const write = <T>(work: () => T): Promise<T> => tables.run(work, errors.billingUnavailable)
  const isFree = ({ leaseUntil }: { leaseUntil: number }, now: number) => leaseUntil <= now
  const change = (id: string, changes: Partial<JobRow>): Job => {
    const row = { ...jobs.get(id)!, ...changes }
    jobs.set(id, row)
    return row
  }
  const fenced = (id: string, fence: number): JobRow | undefined => {
    const row = jobs.get(id)
    return row?.fence === fence && isRunning(row.state) ? row : undefined
  }
  const take = (row: JobRow, { owner, until }: Lease) =>
    change(row.id, { leaseOwner: owner, leaseUntil: until, fence: row.fence + 1 })
  const free = { leaseOwner: null, leaseUntil: 0 }

  const announce = (jobId: string, eventId: string, type: string, attempt: number, nextAt: number) => {
    const none = { triedAt: null, status: null, response: null, error: null, fence: 0, leaseUntil: 0, leaseOwner: null }
    events.set(`${eventId} ${attempt}`, { eventId, jobId, type, attempt, state: 'pending', nextAt, ...none })
  }
  const interrupt = (row: JobRow, error: JobError, event: EndedJob['event'], now: number) => {
    ledger.voidWithin(row.hold)
    change(row.id, { state: 'failed', error, completedAt: now, cost: 0n, progress: 100 })
    if (row.callback) announce(row.id, event.id, event.type, 1, now)
  }
  const forget = (id: string) => {
    jobs.delete(id)
    for (const { eventId, attempt } of events.filter(({ jobId }) => jobId === id))
      events.delete(`${eventId} ${attempt}`)
  }
  const dueAt = ({ nextAt, leaseUntil }: { nextAt: number; leaseUntil: number }) => Math.max(nextAt, leaseUntil)
  const isPending = ({ state }: Delivery) => state === 'pending'

  const kept = (isCounted: (row: JobRow) => boolean): number =>
    jobs.filter(isCounted).reduce((sum, { result }) => sum + (result?.kind === 'blob' ? result.bytes : 0), 0)

  return {
    begin: (job, target, asked) =>
      write(() => {
        const { request, principal } = asked
        const { projectId } = principal
        const before = jobs.get(job.id)
        if (before) ledger.voidWithin(before.hold)
        else if (job.idempotency !== null) {
          const isSame = (row: JobRow) => row.projectId === projectId && row.idempotency === job.idempotency
          const [same] = jobs.filter(isSame)
          if (same && same.createdAt > job.createdAt - IDEMPOTENT_MS) return { existing: same }
          if (same) change(same.id, { idempotency: null })
        }
        const hold = ledger.holdWithin(asked)
        if ('exhausted' in hold) {
          if (before) forget(job.id)
          return hold
        }
        const { id: logId, requestId, endpoint, requestedModel } = request
        const at = { model: request.model!, provider: request.provider!, hold }
        const asked_ = { logId, requestId, endpoint, requestedModel }
        const whose = { orgId: principal.orgId, projectId, keyId: principal.keyId }
        const begun = {
          ...({ state: 'creating', upstreamId: null, progress: null, error: null, cost: null, result: null } as const),
          ...{ startedAt: null, completedAt: null, expiresAt: null, deletedAt: null, nextAt: job.deadlineAt },
          ...{ attempts: 0, failures: 0, fence: 0, ...free },
        }
        if (before) change(job.id, { ...target, ...at })
        else jobs.set(job.id, { ...job, ...target, ...at, ...asked_, ...whose, ...begun })
        return hold
      }),
    start: (id, started) =>
      write(() => {
        const row = jobs.get(id)
        if (row?.state !== 'creating') return undefined
        ledger.handOver(row.hold.id)
        const progress = startProgress(started.progress)
        return change(id, { ...started, progress, startedAt: started.state === 'in_progress' ? row.createdAt : null })
      }),
    drop: id =>
      write(() => {
        const row = jobs.get(id)
        if (row?.state !== 'creating') return
        ledger.voidWithin(row.hold)
        forget(id)
      }),
    interrupt: (id, error, event, now) =>
      write(() => {
        const row = jobs.get(id)
        if (row?.state === 'creating') interrupt(row, error, event, now)
      }),
    interruptLost: (error, event, now) =>
      write(() => {
        const lost = jobs.filter(({ state, hold }) => state === 'creating' && !tables.holds.get(hold.id))
        for (const row of lost) interrupt(row, error, event(row.id), now)
        return lost.length
      }),
    get: async id => jobs.get(id),
    byLogId: async logId => jobs.filter(row => row.logId === logId)[0],
    async list({ orgId = undefined, projectId = undefined }, kind, { after, limit, ascending = false }) {
      const all = jobs
        .filter(row => row.kind === kind && row.deletedAt === null && row.state !== 'creating')
        .filter(row => (orgId ?? row.orgId) === row.orgId && (projectId ?? row.projectId) === row.projectId)
        .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
      const ordered = ascending ? all : all.reverse()
      const from = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1 || ordered.length
      return ordered.slice(from, limit === undefined ? undefined : from + limit)
    },
    claim: (lease, share) =>
      write(() => {
        const left = new Shares(share)
        for (const row of jobs.filter(row => row.leaseOwner === lease.owner && !isFree(row, lease.now))) left.take(row)
        const due = jobs
          .filter(row => isRunning(row.state) && row.nextAt <= lease.now && isFree(row, lease.now))
          .sort((a, b) => a.nextAt - b.nextAt)
        const turns = new Map<string, number>()
        const placed = due.map(row => {
          const turn = (turns.get(row.orgId) ?? 0) + 1
          turns.set(row.orgId, turn)
          return { row, turn }
        })
        placed.sort((a, b) => a.turn - b.turn)
        const taken = placed.filter(({ row }) => left.take(row)).slice(0, lease.limit)
        return taken.map(({ row }) => take(row, lease))
      }),
    claimOne: (id, lease) =>
      write(() => {
        const row = jobs.get(id)
        return row && isRunning(row.state) && isFree(row, lease.now) ? take(row, lease) : undefined
      }),
    renew: (id, fence, leaseUntil) =>
      write(() => fenced(id, fence) !== undefined && change(id, { leaseUntil }) !== undefined),
    move: (id, fence, one) =>
      write(() => {
        const row = fenced(id, fence)
        if (!row) return false
        const { state, progress } = moved(row, one)
        const startedAt = row.startedAt ?? (state === 'in_progress' ? one.at : null)
        const { nextAt, failures } = one
        change(id, { state, progress, startedAt, nextAt, failures, attempts: row.attempts + 1, ...free })
        return true
      }),
    end: (id, fence, { event, ...ended }, request) =>
      write(() => {
        const row = fenced(id, fence)
        if (!row) return false
        change(id, { ...ended, progress: 100, cost: request.cost ?? 0n, attempts: row.attempts + 1, ...free })
        ledger.settleWithin(row.hold, request)
        if (row.callback) announce(id, event.id, event.type, 1, ended.completedAt)
        return true
      }),
    release: owner =>
      write(() => {
        for (const { id } of jobs.filter(({ leaseOwner }) => leaseOwner === owner)) change(id, free)
        for (const one of events.filter(({ leaseOwner }) => leaseOwner === owner)) {
          events.set(`${one.eventId} ${one.attempt}`, { ...one, ...free })
        }
      }),
    async nextAt() {
      const running = jobs.filter(({ state }) => state === 'creating' || isRunning(state)).map(dueAt)
      const told = events.filter(isPending).map(dueAt)
      const kept = jobs.filter(({ result }) => result !== null).map(({ expiresAt }) => expiresAt ?? Infinity)
      const next = Math.min(...running, ...told, ...kept)
      return Number.isFinite(next) ? next : undefined
    },
    expire: (id, now) =>
      write(() => {
        const row = jobs.get(id)
        if (!row?.result) return undefined
        change(id, { result: null, expiresAt: Math.min(row.expiresAt ?? now, now) })
        return row
      }),
    expireDue: (now, limit) =>
      write(() => {
        const due = jobs.filter(({ result, expiresAt }) => result !== null && expiresAt !== null && expiresAt <= now)
        for (const { id } of due.slice(0, limit)) change(id, { result: null })
        return due.slice(0, limit)
      }),
    remove: (id, now) =>
      write(() => {
        const row = jobs.get(id)
        if (!row || row.completedAt === null || row.deletedAt !== null) return undefined
        change(id, { result: null, callback: null, deletedAt: now })
        return row
      }),
    prune: (before, limit) =>
      write(() => {
        const isOld = (row: JobRow) =>
          row.completedAt !== null &&
          row.completedAt < before &&
          row.result === null &&
          events.filter(one => one.jobId === row.id && isPending(one)).length === 0
        const old = jobs.filter(isOld).slice(0, limit)
        for (const { id } of old) forget(id)
        return old.length
      }),
    async blobs(names) {
      const kept = jobs.filter(({ result }) => result?.kind === 'blob' && names.includes(result.blob))
      return new Set(kept.map(({ result }) => (result?.kind === 'blob' ? result.blob : '')))
    },
    claimDeliveries: (lease, share) =>
      write(() => {
        const orgOf = ({ jobId }: Delivery) => jobs.get(jobId)!.orgId
        const held = events.filter(one => isPending(one) && one.leaseOwner === lease.owner && !isFree(one, lease.now))
        const taken = new Map<string, number>()
        const take = (one: Delivery) => {
          const many = (taken.get(orgOf(one)) ?? 0) + 1
          if (many <= share) taken.set(orgOf(one), many)
          return many <= share
        }
        held.forEach(take)
        const due = events.filter(one => isPending(one) && one.nextAt <= lease.now && isFree(one, lease.now))
        return due
          .filter(take)
          .slice(0, lease.limit)
          .map(one => {
            const taken = { ...one, fence: one.fence + 1, leaseOwner: lease.owner, leaseUntil: lease.until }
            events.set(`${one.eventId} ${one.attempt}`, taken)
            return taken
          })
      }),
    deliver: (delivery, delivered) =>
      write(() => {
        const { eventId, attempt, fence, jobId, type } = delivery
        const row = events.get(`${eventId} ${attempt}`)
        if (row?.fence !== fence || !isPending(row)) return false
        events.set(`${eventId} ${attempt}`, { ...row, ...outcomeOf(delivered), ...free })
        if (delivered.state === 'retrying') announce(jobId, eventId, type, attempt + 1, delivered.nextAt)
        else change(jobId, { callback: null })
        return true
      }),
    postpone: ({ eventId, attempt, fence }, nextAt) =>
      write(() => {
        const row = events.get(`${eventId} ${attempt}`)
        if (row?.fence !== fence || !isPending(row)) return false
        events.set(`${eventId} ${attempt}`, { ...row, nextAt, ...free })
        return true
      }),
    deliveries: async jobId => events.filter(one => one.jobId === jobId),
    redeliver: (eventId, now) =>
      write(() => {
        const last = events.filter(one => one.eventId === eventId).at(-1)
        if (!last || !jobs.get(last.jobId)?.callback) return false
        if (isPending(last)) events.set(`${eventId} ${last.attempt}`, { ...last, nextAt: now })
        else announce(last.jobId, eventId, last.type, last.attempt + 1, now)
        return true
      }),
    async status(now) {
      const open = jobs.filter(({ state }) => state === 'creating' || isRunning(state))
      const counted = (names: readonly string[]): Record<string, number> => {
        const counts: Record<string, number> = {}
        for (const name of names) counts[name] = (counts[name] ?? 0) + 1
        return counts
      }
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
      for (const { state, provider } of jobs.filter(({ state }) => state === 'creating' || isRunning(state))) {
        const key = `${state} ${provider}`
        running.set(key, { state, provider, count: (running.get(key)?.count ?? 0) + 1 })
      }
      return { running: [...running.values()], bytes: kept(() => true) }
    },
    keptBytes: async orgId => ({ all: kept(() => true), own: kept(row => row.orgId === orgId) }),
  }
}

/** How many more there may be of each organization, and at each provider. */
class Shares {
  readonly #share: number
  readonly #taken = new Map<string, number>()

  constructor(share: number) {
    this.#share = share
  }

  /** False where one of the two is full. */
  take({ orgId, provider }: Job): boolean {
    const keys = [`org ${orgId}`, `provider ${provider}`]
    if (keys.some(key => (this.#taken.get(key) ?? 0) >= this.#share)) return false
    for (const key of keys) this.#taken.set(key, (this.#taken.get(key) ?? 0) + 1)
    return true
  }
}

const outcomeOf = ({ state, triedAt, status, response, error }: Delivered) => ({
  state,
  triedAt,
  status,
  response,
  error,
})
