/** Usage summed by the hour. The sums outlive the request rows. */
import type { Money } from '../money.ts'

/** Selects usage by owner and time; an absent id does not narrow the selection. */
export interface UsageQuery {
  readonly orgId?: string | undefined
  readonly projectId?: string | undefined
  readonly keyId?: string | undefined
  /** Unix milliseconds, `from` inclusive, `to` exclusive. */
  readonly from: number
  readonly to: number
}

/** Groups for the usage of one project. */
export const reportGroups = ['provider', 'model', 'app', 'api_key'] as const
export type ReportGroup = (typeof reportGroups)[number]
/** Groups for all usage. */
export const usageGroups = [...reportGroups, 'project', 'member', 'day'] as const
export type UsageGroup = (typeof usageGroups)[number]

/** Sums of a group; days are UTC. Keys, projects and members have a name beside their id. */
export type GroupTotals = UsageTotals & { readonly id: string; readonly name?: string }

/** Sums of requests. */
export interface UsageTotals {
  readonly requests: number
  readonly errors: number
  readonly cached: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
  readonly reasoningTokens: number
  /** Cost of all providers' work, paid by credits or by own keys. */
  readonly cost: Money
  /** The part of it that credits paid. */
  readonly creditsCost: Money
  /** The part that callers paid to providers, with keys of their own. */
  readonly byokCost: Money
  /** Beside `cost`. */
  readonly storageCost: Money
}

/** Reads usage from the hourly aggregates. All reject when the store cannot be read. */
export interface UsageStore {
  totals(query: UsageQuery): Promise<UsageTotals>
  /** The costliest first, days in their order; `offset` of them are left out. */
  breakdown(query: UsageQuery, by: UsageGroup, limit?: number, offset?: number): Promise<GroupTotals[]>
  /** Compares request rows, ledger and aggregates; one sentence for each difference. */
  check(): Promise<string[]>
}
