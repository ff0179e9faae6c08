/** Money that is reserved, charged and recorded. */
import type { MoneyState } from '../../limits/alerts.ts'
import type { Shortage } from '../../limits/money.ts'
import type { Money } from '../money.ts'
import type { Usage } from '../usage.ts'
import type { Budget, Principal } from './keys.ts'

/**
 * The payer: the organization's credits, its coding plan's allowance (`premium`: also counted against the week), or the
 * caller itself, at the provider, with its own key.
 */
export type Funds = 'credits' | 'plan' | 'premium' | 'byok'

/** Grant of a coding plan to one attempt. */
export interface Allowance {
  /** Credits of a month. */
  readonly monthly: Money
  /** Part of the credits that premium models may use in a week; undefined when this attempt uses none. */
  readonly premium: Money | undefined
}

/** Requests a hold before a provider is called. */
export interface HoldRequest {
  /** One for each attempt. */
  readonly id: string
  /** Facts of the row that will settle it; an orphan gets that very row. */
  readonly request: Pick<RequestRow, 'id' | 'requestId' | 'endpoint' | 'requestedModel' | 'model' | 'provider'>
  readonly principal: Principal
  readonly amount: Money
  /**
   * Smallest sufficient hold. When `amount` does not fit, everything available is held, but at least this. Default:
   * `amount`.
   */
  readonly least?: Money | undefined
  /**
   * Additional amount that may be needed. It is held as far as half of the room beyond `amount` stays free for others.
   */
  readonly spare?: Money | undefined
  /** Unix milliseconds; from then on recovery may call the hold an orphan. */
  readonly expiresAt: number
  /** The credential is the caller's own: credits are not touched, limits count all the same. */
  readonly byok?: boolean | undefined
  readonly allowance?: Allowance | undefined
}

/** Money reserved for one attempt. */
export interface Hold {
  readonly id: string
  readonly orgId: string
  readonly amount: Money
  readonly funds: Funds
  /** The limits that it counts against from the start, as the ledger writes them; null for none. */
  readonly budgets: string | null
  /** Reason why less than `amount` is held. */
  readonly refused?: Exhausted | undefined
  /** Limits with `notify` that have no room for it. */
  readonly passed?: readonly Exhausted[] | undefined
}

/** Usage and cost of a running answer so far; null while the price is unknown. */
export interface Progress {
  readonly usage: Usage
  readonly cost: Money | null
}

/** The budget without room for the attempt: the credits, the plan, or a limit. */
export interface Exhausted extends Shortage {
  readonly exhausted: Budget['of'] | 'plan' | 'premium' | 'credits'
  /** The end user whose limit it is. */
  readonly endUser?: string | undefined
  /** Unix milliseconds; undefined when that never happens by itself. */
  readonly resetsAt: number | undefined
}

/** One attempt of a finished request, as the request log shows it. Times are milliseconds. */
export interface AttemptRecord {
  readonly provider: string
  readonly model: string
  /** 0 when no answer came. */
  readonly status: number
  readonly error_type: string
  /** From the arrival of the request to the start of the attempt. */
  readonly started_ms: number
  /** Null where the transport does not tell. */
  readonly connect_ms: number | null
  /** From the start of the attempt to the first token; null when none came. */
  readonly ttft_ms: number | null
  readonly duration_ms: number
  /** Fingerprint of the credential; null where none was sent. */
  readonly credential: string | null
  /** Error code because of which the attempt ended, and the next target was tried; null for success. */
  readonly reason: string | null
}

/** Facts of a request that only its log shows. */
export interface RequestDetail {
  /** Amount held in USD; null where nothing was held. */
  readonly held: string | null
  readonly attempts: readonly AttemptRecord[]
}

/** One finished request as it is kept: no content, only facts. */
export interface RequestRow {
  readonly id: string
  readonly requestId: string
  /** Unix milliseconds of arrival. */
  readonly at: number
  readonly orgId: string
  readonly projectId: string
  readonly keyId: string
  readonly endpoint: string
  readonly requestedModel: string
  readonly model: string | null
  readonly provider: string | null
  readonly source: string | null
  readonly endUser?: string | undefined
  readonly tags?: Readonly<Record<string, string>> | undefined
  readonly status: number
  readonly outcome: 'ok' | 'error' | 'aborted' | 'orphaned'
  readonly errorCode: string | null
  readonly streamed: boolean
  readonly cached: boolean
  readonly attempts: number
  readonly durationMs: number
  readonly ttftMs: number | null
  readonly usage: Usage
  readonly estimated: boolean
  /** Cost of the provider's work after the discount; null when the price is unknown. */
  readonly cost: Money | null
  /** Charged on top, for keeping the data. */
  readonly storage: Money
  /** Millionths of the price that were taken off. */
  readonly discount: number
  /** The service tier that the provider reported. */
  readonly tier: string | null
  /** Absent for requests that no provider was asked for, and for jobs. */
  readonly detail?: RequestDetail | undefined
}

/**
 * Resolved promises of `settle` and `recover` mean durable: the transaction is on disk. Those of `hold`, `extend`,
 * `void`, `checkpoint` and `record` mean committed, and that of `spool` written: that outlives the process, but not the machine.
 * All reject with a GatewayError `billing_unavailable`.
 */
export interface Ledger {
  /**
   * Reserves atomically: of every limit, and of the credits or the plan. Either all of them have room or none is touched.
   * Limits with `notify` count the hold whether they have room or not.
   */
  hold(request: HoldRequest): Promise<Hold | Exhausted>
  /**
   * Reserves up to `amount` more for a running attempt, from the payer of the hold. Returns the hold as of then; an
   * ended one does not grow.
   */
  extend(hold: Hold, request: Pick<HoldRequest, 'principal' | 'amount' | 'allowance'>): Promise<Hold>
  /**
   * Charges `row.cost` and gives the rest of the hold back, once: a second settlement of one hold does nothing. Where
   * `recover` has made an orphan of it meanwhile, the row takes the orphan's place and what is missing is charged. A hold
   * that was given back is not settled. One that a crash has lost is charged. With `tells`, resolves with the state then.
   */
  settle(hold: Hold, row: RequestRow, tells?: boolean): Promise<MoneyState | undefined>
  void(hold: Hold): Promise<void>
  /** Notes what a stream has come to so far: that is charged when the process ends before it settles. */
  checkpoint(hold: Hold, progress: Progress): Promise<void>
  /** Keeps a row that costs nothing: refused, failed or replayed. */
  record(row: RequestRow): Promise<void>
  /**
   * Keeps a row while the store cannot be written, and enters it later as the end of `hold`, or of a request that its
   * caller pays for. Rejects when the spool is full; check `canSpool` first.
   */
  spool(row: RequestRow, hold?: Hold): Promise<void>
  /** Read while a request fails; it reads nothing that is kept outside of this process. */
  readonly canSpool: boolean
  balance(orgId: string): Promise<{ balance: Money; held: Money; used: Money }>
  /** Enters spooled rows; turns open holds of dead owners into orphans, charged for what was noted of them: so many. */
  recover(): Promise<number>
}
