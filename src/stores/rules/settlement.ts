/** What the end of a request takes: of the limits, of the credits, of the plan. */
import type { Money } from '../../core/money.ts'
import type { Funds, Hold, Progress, RequestRow } from '../../core/ports.ts'

/** `cost` counts against the limits; `charge` is debited from the credits, `planned` from the plan. */
export interface Bill {
  readonly cost: Money
  readonly charge: Money
  readonly planned: Money
}
export const NOTHING: Bill = { cost: 0n, charge: 0n, planned: 0n }

/** How a request that has a row was paid for. */
export interface Payment {
  /** Null when the price is unknown. */
  readonly cost: Money | null
  readonly funds: Funds
  /** Debited for it in the ledger. */
  readonly charged: Money
}

export const isPlan = (funds: Funds | undefined): boolean => funds === 'plan' || funds === 'premium'

/** What a request came to. Credits pay for storage, whoever pays for the rest. */
export function billOf(funds: Funds, { cost, storage }: Pick<RequestRow, 'cost' | 'storage'>): Bill {
  const price = cost ?? 0n
  return { cost: price, charge: funds === 'credits' ? price + storage : storage, planned: isPlan(funds) ? price : 0n }
}

export const chargedBy = ({ charge, planned }: Bill): Money => charge + planned

/** What is missing of `bill` where the request was taken for an orphan: what that was charged is not given back. */
export function restOf({ cost, funds, charged }: Payment, bill: Bill): Bill {
  const [ofCredits, ofPlan] = isPlan(funds) ? [0n, charged] : [charged, 0n]
  return {
    cost: rise(cost ?? 0n, bill.cost),
    charge: rise(ofCredits, bill.charge),
    planned: rise(ofPlan, bill.planned),
  }
}

const rise = (from: Money, to: Money): Money => (to > from ? to - from : 0n)

/** What a spooled row says of the hold that it ends. */
export type Ends = Pick<Hold, 'id' | 'funds' | 'budgets'>

/**
 * Which of a request's open holds, the oldest first, a spooled row ends: the one that it names, else the last that its
 * caller pays for itself, at the same provider. The others are those of failed attempts.
 */
export function ownHold<T extends { readonly id: string; readonly funds: Funds; readonly provider: string | null }>(
  holds: readonly T[],
  ends: Ends | undefined,
  { provider }: Pick<RequestRow, 'provider'>,
): T | undefined {
  return holds.findLast(hold => (ends ? hold.id === ends.id : hold.funds === 'byok' && hold.provider === provider))
}

/** A hold of a living owner is an orphan so long after it expired. */
export const GRACE_MS = 60_000

/** A request whose process has ended, as its hold describes it. */
export interface LostRequest
  extends Pick<
    RequestRow,
    'id' | 'requestId' | 'at' | 'orgId' | 'projectId' | 'keyId' | 'endpoint' | 'requestedModel' | 'model' | 'provider'
  > {
  /** Undefined when nothing was noted. */
  readonly progress: Progress | undefined
}

/** The row of a lost request: it is charged for what was noted of it. */
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
