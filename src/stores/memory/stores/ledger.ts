/** The ledger in memory: one owner, so that only its age makes a hold an orphan. */
import { errors } from '../../../core/error.ts'
import type { Money } from '../../../core/money.ts'
import type { Exhausted, Hold, HoldRequest, Ledger, Progress, RequestRow } from '../../../core/ports.ts'
import type { LedgerTransaction } from '../../rules/jobs.ts'
import { gone, nothingLeft, type OpenHold, Reservations } from '../../rules/reservations.ts'
import {
  type Bill,
  type Ends,
  GRACE_MS,
  type LostRequest,
  NOTHING,
  orphanRow,
  ownHold,
  recordSettlement,
} from '../../rules/settlement.ts'
import { Budgets, Credits, Plans } from './funds.ts'
import { RequestLog } from './requests.ts'
import type { HeldRow } from './rows.ts'
import type { Tables } from './tables.ts'

/** Above the range of other stores. */
const TOO_MUCH = 2n ** 63n

interface Spooled {
  readonly row: RequestRow
  readonly ends: Ends | undefined
}

/** The whole ledger: holds, settlement, request rows and the spool. */
export class MemoryLedger implements Ledger, LedgerTransaction {
  /** Writing cannot fail. */
  readonly canSpool = true
  readonly #tables: Tables
  readonly #warn: (error: unknown) => void
  readonly #reservations: Reservations
  readonly #log: RequestLog
  #spooled: Spooled[] = []

  /** `warn` receives the errors of spooled rows that cannot be entered. */
  constructor(tables: Tables, warn: (error: unknown) => void) {
    this.#tables = tables
    this.#warn = warn
    this.#reservations = new Reservations(new Credits(tables), new Budgets(tables), new Plans(tables))
    this.#log = new RequestLog(tables)
  }

  hold(wanted: HoldRequest): Promise<Hold | Exhausted> {
    return this.#write(() => this.holdWithin(wanted))
  }

  holdWithin(wanted: HoldRequest): Hold | Exhausted {
    const { id, request, principal, expiresAt } = wanted
    const { holds, now } = this.#tables
    if (wanted.amount < 0n || wanted.amount >= TOO_MUCH) throw new RangeError('An amount is from 0 to below 2^63.')
    if (holds.get(id)) throw new Error(`The hold ${id} already exists.`)
    const reserved = this.#reservations.reserve(wanted, now())
    if ('exhausted' in reserved) return reserved
    const { amount, funds, refused } = reserved
    const counted = principal.budgets.length > 0 ? JSON.stringify(principal.budgets.map(budget => budget.id)) : null
    const hold: Hold = { id, orgId: principal.orgId, amount, funds, budgets: counted, refused }
    const facts = { request, principal, expiresAt, provider: request.provider, createdAt: now() }
    holds.set(id, { id, orgId: hold.orgId, amount, funds, budgets: counted, ...facts, progress: undefined })
    return hold
  }

  /** A hold without an expiry is no orphan here. */
  handOver(holdId: string): void {
    const open = this.#tables.holds.get(holdId)
    if (open) this.#tables.holds.set(holdId, { ...open, expiresAt: Number.POSITIVE_INFINITY })
  }

  extend(hold: Hold, wanted: Pick<HoldRequest, 'principal' | 'amount' | 'allowance'>): Promise<Hold> {
    return this.#write(() => {
      const open = this.#tables.holds.get(hold.id)
      if (!open) return { ...hold, refused: nothingLeft }
      const { budgets } = open
      const reserved = this.#reservations.extend({ funds: hold.funds, budgets }, wanted, this.#tables.now())
      if ('exhausted' in reserved) return { ...hold, budgets, refused: reserved }
      const { amount, refused } = reserved
      this.#tables.holds.set(hold.id, { ...open, amount: open.amount + amount })
      return { ...hold, budgets, amount: hold.amount + amount, refused }
    })
  }

  settle(hold: Hold, row: RequestRow): Promise<void> {
    return this.#write(() => this.settleWithin(hold, row))
  }

  settleWithin(hold: Hold, row: RequestRow): void {
    const open = this.#tables.holds.delete(hold.id)
    if (open) this.#settle(open, row)
    // Recovery had recorded the request as orphaned.
    else if (this.#log.outcomeOf(row.id) === 'orphaned') this.#settle(gone(hold), row)
  }

  void(hold: Hold): Promise<void> {
    return this.#write(() => this.voidWithin(hold))
  }

  voidWithin(hold: Hold): void {
    const open = this.#tables.holds.delete(hold.id)
    if (open) this.#reservations.release(open, NOTHING, this.#tables.now())
  }

  checkpoint(hold: Hold, progress: Progress): Promise<void> {
    return this.#write(() => {
      const open = this.#tables.holds.get(hold.id)
      if (open) this.#tables.holds.set(hold.id, { ...open, progress })
    })
  }

  record(row: RequestRow): Promise<void> {
    return this.#write(() => {
      this.#log.add(row, { cost: row.cost === null ? null : 0n, funds: 'credits', charged: 0n })
    })
  }

  async spool(row: RequestRow, hold?: Hold): Promise<void> {
    this.#spooled.push({ row, ends: hold && { id: hold.id, funds: hold.funds, budgets: hold.budgets } })
  }

  async balance(orgId: string): Promise<{ balance: Money; held: Money; used: Money }> {
    return this.#tables.balance(orgId)
  }

  async recover(): Promise<number> {
    const spooled = this.#spooled
    this.#spooled = []
    for (const one of spooled) await this.#write(() => this.#enter(one)).catch(this.#warn)
    return this.#write(() => {
      const { holds, now } = this.#tables
      const before = now() - GRACE_MS
      const orphans = holds.filter(({ expiresAt }) => Math.ceil(expiresAt) < before)
      for (const orphan of orphans) {
        holds.delete(orphan.id)
        // Another attempt may have ended it.
        if (this.#log.outcomeOf(orphan.request.id)) this.#reservations.release(orphan, NOTHING, now())
        else this.#settle(orphan, orphanRow(lostRequest(orphan)))
      }
      return orphans.length
    })
  }

  /** Within a transaction: records and charges a hold's result. Throws when the request is already recorded. */
  #settle(open: OpenHold, row: RequestRow): void {
    const { bill, reference } = recordSettlement(this.#log, open.funds, row)
    this.#take(open, reference, bill)
  }

  /** Within a transaction: ends a hold with its bill; `reference` names the entries in the ledger. */
  #take(open: OpenHold, reference: string, bill: Bill): void {
    const { orgId } = open
    const now = this.#tables.now()
    const at = this.#reservations.release(open, bill, now)
    const entry = { orgId, reference, note: null }
    if (bill.charge > 0n) this.#tables.book({ ...entry, kind: 'charge', amount: -bill.charge, at: now })
    if (bill.planned > 0n) this.#tables.book({ ...entry, kind: 'plan', amount: -bill.planned, at })
  }

  /** Within a transaction: settles a request whose row was spooled, unless it is settled. */
  #enter({ row, ends }: Spooled): void {
    const outcome = this.#log.outcomeOf(row.id)
    if (outcome !== undefined && outcome !== 'orphaned') return
    const holds = this.#tables.holds.filter(({ request }) => request.id === row.id)
    const own = ownHold(holds, ends, row)
    for (const hold of holds) {
      this.#tables.holds.delete(hold.id)
      if (hold !== own) this.#reservations.release(hold, NOTHING, this.#tables.now())
    }
    const { funds = 'byok', budgets = null } = ends ?? {}
    // A part of a session is recorded under another id than that of its hold's request.
    const named = own ?? (ends && this.#tables.holds.get(ends.id))
    if (named) this.#tables.holds.delete(named.id)
    this.#settle(named ?? { orgId: row.orgId, amount: 0n, funds, budgets }, row)
  }

  #write<T>(work: () => T): Promise<T> {
    return this.#tables.run(work, errors.billingUnavailable)
  }
}

const lostRequest = ({ request, principal, createdAt, progress }: HeldRow): LostRequest => ({
  ...request,
  at: createdAt,
  orgId: principal.orgId,
  projectId: principal.projectId,
  keyId: principal.keyId,
  progress,
})
