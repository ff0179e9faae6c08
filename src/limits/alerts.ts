/** Alerts as settlements, rate limits and stores deal with them (docs/alerts.md). Money is nano-USD, times are Unix milliseconds. */

import type { LimitTerms, Shortage } from './money.ts'

/** The caller whose request has used something up. */
export interface AlertCaller {
  readonly orgId: string
  readonly orgName: string
  readonly projectId: string
  readonly keyId: string
  readonly keyName: string
  readonly member?: { readonly id: string } | undefined
  readonly session?: { readonly id: string } | undefined
  readonly endUser?: string | undefined
}

/** Spending of a money limit. */
export interface LimitStanding extends LimitTerms {
  readonly spent: bigint
}

/** Credits of an organization; `credited` are all that it ever got, less what was taken back. */
export interface CreditStanding {
  readonly balance: bigint
  readonly credited: bigint
}

/** State of limits and credits after a settlement. */
export interface MoneyState {
  readonly limits: readonly LimitStanding[]
  /** Undefined where the settlement has not touched them. */
  readonly credits: CreditStanding | undefined
}

/** State of a rate limit. */
export interface RateStanding {
  /** Identifies its counter. */
  readonly id: string
  /** Such as `rpd`. */
  readonly kind: string
  readonly unit: string
  readonly span: string
  readonly of: string
  readonly whose: string
  readonly limit: number
  readonly used: number
  readonly windowMs: number
}

/** Watches limits and credits. No method throws or waits. */
export interface LimitWatch {
  /** Whether the configuration has an alert. */
  readonly isOn: boolean
  settled(caller: AlertCaller, standing: MoneyState): void
  refused(caller: AlertCaller & { readonly budgets: readonly LimitTerms[] }, shortage: Shortage): void
  counted(caller: AlertCaller, rate: RateStanding): void
}

/** An alert. The node that stores its `key` first sends it. */
export interface StoredAlert {
  readonly id: string
  readonly key: string
  /** Identifies the entry of the configuration that it belongs to. */
  readonly rule: string
  readonly orgId: string
  readonly at: number
  /** From then on its key is free; undefined for never. */
  readonly endsAt: number | undefined
  /** JSON of what it tells. */
  readonly body: string
}

/** The callback of an alert. */
export interface AlertMessage {
  readonly url: string
  /** Undefined where nothing is signed. */
  readonly secret: string | undefined
  readonly on: string
  /** Returns the body as it is posted. */
  body(event: { readonly id: string; readonly type: string; readonly createdAt: number }): string
}

/** Keeps alerts. Reads and writes reject with a GatewayError where the store fails. */
export interface AlertStore {
  /** Enters an alert, and the event of its callback, if it has one. False where its key is taken. */
  raise(alert: StoredAlert, event: { readonly id: string; readonly type: string } | undefined): Promise<boolean>
  find(id: string): Promise<StoredAlert | undefined>
  standing(orgId: string, limits: readonly string[]): Promise<MoneyState>
  /** Resolves with names of an organization and of a key, and with the member whose key it is. */
  callerOf(orgId: string, keyId: string): Promise<Pick<AlertCaller, 'orgName' | 'keyName' | 'member'>>
  /** Drops alerts whose keys are free since before this time; returns how many. */
  prune(before: number, limit: number): Promise<number>
}
