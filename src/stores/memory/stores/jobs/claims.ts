/** Running jobs: the holder of the lease and the newest fence changes a row. */
import type { Job, JobStore } from '../../../../core/ports.ts'
import { isRunning, type LedgerTransaction, moved } from '../../../rules/jobs.ts'
import type { JobRow } from '../rows.ts'
import { announce, isPending } from './events.ts'
import { dueAt, FREE, isFree, isOpen, type JobTable } from './table.ts'

type Claims = Pick<JobStore, 'claim' | 'claimOne' | 'renew' | 'move' | 'end' | 'release' | 'nextAt'>

/** The part of `JobStore` that moves running jobs. Claims of one store go in turns by organization. */
export function claims(table: JobTable, ledger: LedgerTransaction): Claims {
  const { events } = table.tables
  return {
    claim: (lease, share) =>
      table.write(() => {
        const left = new Shares(share)
        for (const row of table.filter(row => row.leaseOwner === lease.owner && !isFree(row, lease.now))) left.take(row)
        const isDue = (row: JobRow) => isRunning(row.state) && row.nextAt <= lease.now && isFree(row, lease.now)
        const taken = inTurns(table.filter(isDue)).filter(row => left.take(row))
        return taken.slice(0, lease.limit).map(row => table.claim(row, lease))
      }),
    claimOne: (id, lease) =>
      table.write(() => {
        const row = table.get(id)
        return row && isRunning(row.state) && isFree(row, lease.now) ? table.claim(row, lease) : undefined
      }),
    renew: (id, fence, leaseUntil) =>
      table.write(() => table.fenced(id, fence) !== undefined && table.change(id, { leaseUntil }) !== undefined),
    move: (id, fence, change) =>
      table.write(() => {
        const row = table.fenced(id, fence)
        if (!row) return false
        const { state, progress } = moved(row, change)
        const startedAt = row.startedAt ?? (state === 'in_progress' ? change.at : null)
        const { nextAt, failures } = change
        table.change(id, { state, progress, startedAt, nextAt, failures, attempts: row.attempts + 1, ...FREE })
        return true
      }),
    end: (id, fence, { event, ...ended }, request) =>
      table.write(() => {
        const row = table.fenced(id, fence)
        if (!row) return false
        table.change(id, { ...ended, progress: 100, cost: request.cost ?? 0n, attempts: row.attempts + 1, ...FREE })
        ledger.settleWithin(row.hold, request)
        if (row.callback) announce(table, id, event, ended.completedAt)
        return true
      }),
    release: owner =>
      table.write(() => {
        for (const { id } of table.filter(({ leaseOwner }) => leaseOwner === owner)) table.change(id, FREE)
        for (const one of events.filter(({ leaseOwner }) => leaseOwner === owner)) {
          events.set(`${one.eventId} ${one.attempt}`, { ...one, ...FREE })
        }
      }),
    async nextAt() {
      const running = table.filter(isOpen).map(dueAt)
      const pending = events.filter(isPending).map(dueAt)
      const removals = table.filter(({ result }) => result !== null).map(({ expiresAt }) => expiresAt ?? Infinity)
      const next = Math.min(...running, ...pending, ...removals)
      return Number.isFinite(next) ? next : undefined
    },
  }
}

/** The first of each organization, then the second of each, and so on. */
function inTurns(due: readonly JobRow[]): JobRow[] {
  const turns = new Map<string, number>()
  const placed = [...due]
    .sort((a, b) => a.nextAt - b.nextAt)
    .map(row => {
      const turn = (turns.get(row.orgId) ?? 0) + 1
      turns.set(row.orgId, turn)
      return { row, turn }
    })
  return placed.sort((a, b) => a.turn - b.turn).map(({ row }) => row)
}

/** How many more there may be of each organization, and at each provider. */
class Shares {
  readonly #share: number
  readonly #taken = new Map<string, number>()

  constructor(share: number) {
    this.#share = share
  }

  /** False where one of the two is full. */
  take({ orgId, provider, owner }: Job): boolean {
    const keys = [`org ${orgId}`, `provider ${owner ?? ''} ${provider}`]
    if (keys.some(key => (this.#taken.get(key) ?? 0) >= this.#share)) return false
    for (const key of keys) this.#taken.set(key, (this.#taken.get(key) ?? 0) + 1)
    return true
  }
}
