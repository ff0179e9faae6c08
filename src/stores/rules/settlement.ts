/** The bill at the end of a request: amounts for limits, credits and the plan. */
import type { Money } from '../../core/money.ts'
import type { Funds, Hold, Progress, RequestRow } from '../../core/ports.ts'

/** `cost` counts against limits; `charge` is debited from credits, `planned` from the plan. */
export interface Bill {
  readonly cost: Money
  readonly charge: Money
  readonly planned: Money
}
/** The bill of a request that costs nothing. */
export const NOTHING: Bill = { cost: 0n, charge: 0n, planned: 0n }

/** Payment of a recorded request. */
export interface Payment {
  /** Null when the price is unknown. */
  readonly cost: Money | null
  readonly funds: Funds
  /** Debited for it in the ledger. */
  readonly charged: Money
}

/** True where a plan pays, with or without its premium allowance. */
export const isPlan = (funds: Funds | undefined): boolean => funds === 'plan' || funds === 'premium'

/** The bill of a request. Credits pay for storage, independent of the payer of the rest. */
export function billOf(funds: Funds, { cost, storage }: Pick<RequestRow, 'cost' | 'storage'>): Bill {
  const price = cost ?? 0n
  return { cost: price, charge: funds === 'credits' ? price + storage : storage, planned: isPlan(funds) ? price : 0n }
}

/** Returns the organization's charge in nano-USD, by credits or plan. */
export const chargedBy = ({ charge, planned }: Bill): Money => charge + planned

/** The rest of `bill` after an orphan's charge: the charge is not refunded. */
export function restOf({ cost, funds, charged }: Payment, bill: Bill): Bill {
  const [ofCredits, ofPlan] = isPlan(funds) ? [0n, charged] : [charged, 0n]
  return {
    cost: rise(cost ?? 0n, bill.cost),
    charge: rise(ofCredits, bill.charge),
    planned: rise(ofPlan, bill.planned),
  }
}

/** The rows of requests of a store, within a transaction. */
interface RequestLog {
  /** False when the request is already recorded. */
  add(row: RequestRow, payment: Payment): boolean
  /** Removes the row of an orphan; undefined when it is none. */
  takeOrphan(id: string): Payment | undefined
}

/**
 * Records the result of a hold; returns its bill, and the reference of its entries in the ledger. For a request recorded
 * as orphaned, that charge stays and the rest is billed. Throws when the request is already recorded.
 */
export function recordSettlement(
  log: RequestLog,
  funds: Funds,
  row: RequestRow,
): { readonly bill: Bill; readonly reference: string } {
  const bill = billOf(funds, row)
  if (log.add(row, { cost: row.cost, funds, charged: chargedBy(bill) })) return { bill, reference: row.id }
  const orphan = log.takeOrphan(row.id)
  if (!orphan) throw new Error(`Request ${row.id} is already recorded and is not charged again.`)
  const rest = restOf(orphan, bill)
  log.add(row, { cost: row.cost, funds, charged: orphan.charged + chargedBy(rest) })
  return { bill: rest, reference: `${row.id}:rest` }
}

const rise = (from: Money, to: Money): Money => (to > from ? to - from : 0n)

/** The hold that a spooled row ends. */
export type Ends = Pick<Hold, 'id' | 'funds' | 'budgets'>

/**
 * Which of a request's open holds, oldest first, a spooled row ends: the named one, else the last that its caller pays
 * for itself, at the same provider. The others belong to failed attempts.
 */
export function ownHold<T extends { readonly id: string; readonly funds: Funds; readonly provider: string | null }>(
  holds: readonly T[],
  ends: Ends | undefined,
  { provider }: Pick<RequestRow, 'provider'>,
): T | undefined {
  return holds.findLast(hold => (ends ? hold.id === ends.id : hold.funds === 'byok' && hold.provider === provider))
}

/** Time after its expiry when a hold of a living owner becomes an orphan. */
export const GRACE_MS = 60_000

/** A request whose process has ended, as its hold describes it. */
export interface LostRequest
  extends Pick<
    RequestRow,
    'id' | 'requestId' | 'at' | 'orgId' | 'projectId' | 'keyId' | 'endpoint' | 'requestedModel' | 'model' | 'provider'
  > {
  /** Undefined without a checkpoint. */
  readonly progress: Progress | undefined
}

/** The row of a lost request: charged by its last checkpoint. */
export const orphanRow = ({ progress, ...request }: LostRequest): RequestRow => ({
  ...request,
  source: null,
  status: 0,
  outcome: 'orphaned',
  errorCode: null,
  streamed: progress !== undefined,
  cached: false,
  attempts: 1,
  durationMs: 0,
  ttftMs: null,
  usage: progress?.usage ?? {},
  cost: progress ? progress.cost : 0n,
  estimated: progress !== undefined,
  storage: 0n,
  discount: 0,
  tier: null,
})
